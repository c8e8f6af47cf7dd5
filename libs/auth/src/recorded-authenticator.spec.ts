import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, Refused, Unauthorized } from '#core';
import type { AuditEvent } from '#audit';
import { processState, SharedStateUnavailable, SuspendedAgents } from '#state';
import { Authenticator, RecordedAuthenticator } from './authenticator.js';
import type { CredentialSource } from './credentials.js';
import { AuthenticationUnavailable } from './errors.js';

const agent = new Agent({ definition: compileAgentDefinition('reader', {}), principal: 'p' });

class OneKey extends Authenticator {
  override readonly challenge = 'Bearer';
  authenticate({ headers }: CredentialSource): Promise<Agent> {
    if (headers['x-mcp-api-key'] === 'right') return Promise.resolve(agent);
    if (headers['x-mcp-api-key'] === 'broken') return Promise.reject(new Error('database'));
    return Promise.reject(new Unauthorized('no such key'));
  }
}

function createRecordedAuthenticator(suspended = new SuspendedAgents(processState())) {
  const events: AuditEvent[] = [];
  let now = 1_800_000_000_000;
  const authenticator = new RecordedAuthenticator(
    () => new OneKey(),
    { recordEvent: (event) => void events.push(event) },
    suspended,
    { now: () => now },
  );
  const ask = (key: string) =>
    authenticator
      .authenticate({ headers: { 'x-mcp-api-key': key }, remoteAddress: '127.0.0.9', method: 'POST' })
      .catch((error: unknown) => error);
  return { events, authenticator, ask, pass: (milliseconds: number) => (now += milliseconds) };
}

it('answers everything else in the words of the authenticator behind it: none of them is forgotten', () => {
  const names = Object.getOwnPropertyNames(Authenticator.prototype).filter((name) => name !== 'constructor');
  const forwarded = Object.getOwnPropertyNames(RecordedAuthenticator.prototype);
  expect(names.length).toBeGreaterThan(0);
  expect(names.filter((name) => !forwarded.includes(name))).toEqual([]);
  expect(createRecordedAuthenticator().authenticator.challenge).toBe('Bearer');
});

describe('who is not let in', () => {
  it('is written down with the reason and the address, and never with the credential', async () => {
    const { events, ask } = createRecordedAuthenticator();
    expect(await ask('secret-guess')).toBeInstanceOf(Unauthorized);
    expect(events).toEqual([
      {
        type: 'authentication',
        at: '2027-01-15T08:00:00.000Z',
        success: false,
        remote_address: '127.0.0.9',
        cause: 'no such key',
      },
    ]);
    expect(JSON.stringify(events)).not.toContain('secret-guess');
  });

  it('is refused, and is no internal error', async () => {
    const { events, ask, authenticator } = createRecordedAuthenticator();
    expect(await ask('right')).toBe(agent);
    expect(await ask('broken')).toBeInstanceOf(Error);
    expect(events).toEqual([]);
    expect(authenticator.challenge).toBe('Bearer');
  });

  it('is written down ten times a second at most, and the rest are counted', async () => {
    const { events, ask, pass } = createRecordedAuthenticator();
    for (let attempt = 0; attempt < 500; attempt += 1) await ask('guess');
    expect(events).toHaveLength(10);
    pass(1000);
    await ask('guess');
    await ask('guess');
    expect(events.slice(10)).toMatchObject([{ suppressed: 490 }, {}]);
    expect(events[11]).not.toHaveProperty('suppressed');
  });
});

describe('a caller whose agent is suspended', () => {
  const reason = 'its key is in a public repository';

  it('is refused, recorded by name without the reason of the operator, and let in again when it is resumed', async () => {
    const suspended = new SuspendedAgents(processState());
    const { ask, events } = createRecordedAuthenticator(suspended);
    await suspended.suspend({ agent: 'reader', by: 'key:chief', reason });
    const refused = await ask('right');
    expect(refused).toBeInstanceOf(Refused);
    expect((refused as Refused).refusal).toEqual({
      code: 'access_denied',
      gate: 'suspension',
      message: "agent 'reader' is suspended",
    });
    expect(events).toEqual([
      expect.objectContaining({ success: false, cause: 'suspended', agent_name: 'reader', principal: 'p' }),
    ]);
    await suspended.resume('reader');
    expect(await ask('right')).toBe(agent);
  });

  it('looks like any other where the key is wrong', async () => {
    const suspended = new SuspendedAgents(processState());
    await suspended.suspend({ agent: 'reader', by: 'key:chief', reason });
    expect(await createRecordedAuthenticator(suspended).ask('wrong')).toBeInstanceOf(Unauthorized);
  });

  it('is not admitted while nobody knows who is suspended', async () => {
    const unread = { assertActive: () => Promise.reject(new SharedStateUnavailable()) };
    const { ask, events } = createRecordedAuthenticator(unread as unknown as SuspendedAgents);
    expect(await ask('right')).toBeInstanceOf(AuthenticationUnavailable);
    expect(events).toEqual([]);
  });
});
