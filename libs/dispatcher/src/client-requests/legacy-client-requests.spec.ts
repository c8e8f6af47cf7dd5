import { describe, expect, it } from 'vitest';
import {
  type ClientQuestion,
  type FormQuestion,
  Refused,
  type ClientLink,
  type ClientReply,
  ClientUnreachable,
  McpRequest,
  type RequestTransport,
  isJsonObject,
  type JsonObject,
} from '#core';
import { LegacyClientRequests } from './client-requests.js';
import { smallAgent } from '../contracts/kernel-under-test.js';

/** A client link in the same process that answers with the values of a test. */
class LinkInProcess implements ClientLink {
  readonly sent: { method: string; params: JsonObject; timeout: number }[] = [];
  constructor(private readonly reply: ClientReply | ClientUnreachable) {}

  notify(): void {}

  request(method: string, params: JsonObject, timeout: number): Promise<ClientReply> {
    this.sent.push({ method, params, timeout });
    return this.reply instanceof Error ? Promise.reject(this.reply) : Promise.resolve(this.reply);
  }
}

const question: FormQuestion = {
  kind: 'form',
  message: 'Who?',
  schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  meta: { 'parse.tool': 'x' },
};

function asksOf(more: Partial<RequestTransport>, reply: ClientReply | ClientUnreachable = { result: {} }) {
  const link = new LinkInProcess(reply);
  const transport: RequestTransport = {
    signal: new AbortController().signal,
    era: 'legacy',
    version: '2025-06-18',
    clientCapabilities: { elicitation: {}, sampling: {}, roots: {} },
    link,
    ...more,
  };
  return {
    link,
    asks: new LegacyClientRequests(new McpRequest(smallAgent(), transport), 5_000),
  };
}

describe('a question to the client of a session', () => {
  it('is sent as its revision knows it, and the answer that fits is handed back', async () => {
    const { link, asks: clientRequests } = asksOf(
      {},
      { result: { action: 'accept', content: { name: 'Ada' } } },
    );
    expect(await clientRequests.ask('k', question)).toEqual({ action: 'accept', content: { name: 'Ada' } });
    expect(link.sent).toEqual([
      {
        method: 'elicitation/create',
        params: { message: 'Who?', requestedSchema: question.schema, _meta: { 'parse.tool': 'x' } },
        timeout: 5_000,
      },
    ]);
  });

  it.each<[unknown]>([
    [{ error: { code: -1, message: 'no' } }],
    [{ result: 'yes' }],
    [{ result: { action: 'sure' } }],
    [{ result: { action: 'accept', content: { name: 7 } } }],
    [{ result: { action: 'accept' } }],
    [{ result: { action: 'accept', content: {} } }],
  ])('counts %j as cancelled', async (reply) => {
    const { asks: clientRequests } = asksOf({}, reply as ClientReply);
    expect(await clientRequests.ask('k', question)).toEqual({ action: 'cancel' });
  });

  it.each<[Partial<RequestTransport>, ClientQuestion, boolean]>([
    [{ clientCapabilities: {} }, question, false],
    [{ clientCapabilities: { elicitation: true } }, question, true],
    [{ clientCapabilities: { elicitation: false } }, question, false],
    [{ version: '2025-03-26' }, question, false],
    [{ version: '2025-11-25' }, question, true],
    [{ version: '2025-11-25', clientCapabilities: { elicitation: { url: {} } } }, question, false],
    [{ version: '2025-11-25' }, { kind: 'url', message: '', url: '' }, false],
    [
      { version: '2025-11-25', clientCapabilities: { elicitation: { url: {} } } },
      { kind: 'url', message: '', url: '' },
      true,
    ],
    [{}, { kind: 'sampling', params: {} }, true],
    [{}, { kind: 'sampling', params: { tools: [] } }, false],
    [{ clientCapabilities: {} }, { kind: 'roots' }, false],
  ])('is sent only to a client that declared it: %j', async (more, requested, declared) => {
    const { link, asks: clientRequests } = asksOf(more);
    expect(clientRequests.canAnswer(requested)).toBe(declared);
    if (declared) return;
    await expect(clientRequests.ask('k', requested)).rejects.toBeInstanceOf(Refused);
    expect(link.sent).toEqual([]);
  });

  it('that cannot be sent says why', async () => {
    const reason = async (more: Partial<RequestTransport>, reply?: ClientUnreachable) =>
      asksOf(more, reply)
        .asks.ask('k', question)
        .catch((error: unknown) => (error instanceof ClientUnreachable ? error.reason : error));
    const noLink = { link: undefined };
    expect(await reason(noLink)).toBe('no-session');
    expect(await reason({ ...noLink, correlationId: 's' })).toBe('no-stream');
    expect(await reason({ signal: AbortSignal.abort('client_disconnect') })).toBe('aborted');
    expect(await reason({}, new ClientUnreachable('timed-out'))).toBe('timed-out');
  });

  it('about text or folders is refused when the client sends an error', async () => {
    const { asks: clientRequests } = asksOf({}, { error: { code: -1, message: 'no' } });
    await expect(clientRequests.ask('k', { kind: 'sampling', params: {} })).rejects.toBeInstanceOf(Refused);
    await expect(clientRequests.ask('k', { kind: 'roots' })).rejects.toBeInstanceOf(Refused);
  });

  it('about folders is answered with folders', async () => {
    const roots = [{ uri: 'file:///work', name: 'work' }];
    const { asks: clientRequests } = asksOf({}, { result: { roots } });
    const answer = await clientRequests.ask('k', { kind: 'roots' });
    expect(isJsonObject(answer) && answer['roots']).toEqual(roots);
  });
});
