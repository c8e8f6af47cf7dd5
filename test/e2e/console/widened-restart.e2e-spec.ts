import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { type Database, type Service, startDatabase, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const KEY = 'key-of-chief-0000';
const NARROW = { policy: { classes: { Post: { fields: ['title'] } } }, agents: { chief: {} } };
const WIDER = { ...NARROW, policy: { classes: { Post: { fields: ['title', 'body'] } } } };
const MORE_AGENTS = { ...NARROW, agents: { chief: {}, new: { permissions: 'write' } } };
const WITH_USER = { ...NARROW, agents: { chief: {}, person: { identity: { user: 'u1' } } } };

let database: Database;
let folder: string;
let path: string;
beforeAll(async () => {
  database = await startDatabase(POSTS_SEED);
}, 120_000);

const start = ({ policy, agents }: { policy: object; agents: Record<string, object> }) =>
  startService({
    config: {
      policy,
      agents,
      auth: Object.keys(agents).map((agent) => ({
        apiKey: agent === 'chief' ? KEY : `key-of-${agent}-00000`,
        agent,
      })),
      database: { uri: database.uri, name: 'parley' },
      console: { operators: ['chief'] },
      audit: { sinks: [{ kind: 'file', path }] },
    },
  });

async function ask(service: Service, route: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${service.origin}/console/api/${route}`, {
    headers: { 'X-MCP-API-Key': KEY },
  });
  return (await response.json()) as Record<string, unknown>;
}

/** What the strip above every page goes by, once it is known; null where it stays unknown. */
async function readWidened(service: Service): Promise<unknown> {
  const read = async () => {
    const { replicas } = (await ask(service, 'state')) as { replicas: { policy: { widened: unknown } }[] };
    return replicas[0]?.policy.widened;
  };
  await read();
  const { from } = await ask(service, 'policy/changes');
  if (from === null) return read();
  return vi.waitFor(async () => {
    const widened = await read();
    expect(widened).not.toBeNull();
    return widened;
  }, 15_000);
}

type Configured = Parameters<typeof start>[0];

/** Serves one after the other. @param between changes the records */
async function restart(
  first: Configured,
  then: Configured,
  between: () => unknown = () => undefined,
): Promise<Record<string, unknown>> {
  folder = makeFolder('restart');
  path = join(folder, 'audit.jsonl');
  await (await start(first)).stop();
  between();
  const service = await start(then);
  try {
    return { widened: await readWidened(service), ...(await ask(service, 'policy/changes')) };
  } finally {
    await service.stop();
  }
}

const rewrite = (change: (record: Record<string, unknown>) => object) => () => {
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  const changed = lines.map((line) => {
    const record = JSON.parse(line) as Record<string, unknown>;
    return JSON.stringify(record['type'] === 'configuration' ? change(record) : record);
  });
  writeFileSync(path, `${changed.join('\n')}\n`);
};

describe('a restart', () => {
  it('with a wider policy is pointed out like a reload, and says what changed', async () => {
    const { changes, ...others } = await restart(NARROW, WIDER);
    expect(others).toMatchObject({ widened: true, from: 0, to: 1, widens: true });
    expect(changes).toContainEqual(expect.objectContaining({ name: 'body' }));
  });

  it('with another agent is pointed out', async () => {
    expect(await restart(NARROW, MORE_AGENTS)).toMatchObject({ widened: true, from: 0, to: 1 });
  });

  it('with another agent that reads as a user is pointed out, and so is what it gains', async () => {
    expect(await restart(NARROW, WITH_USER)).toMatchObject({ widened: true, from: 0, to: 1 });
    const wider = { ...WITH_USER, policy: WIDER.policy };
    expect(await restart(WITH_USER, wider)).toMatchObject({ widened: true, from: 0, to: 1 });
    expect(await restart(WITH_USER, NARROW)).toMatchObject({ widened: false, from: 0, to: 1 });
  });

  it('with a narrower policy or the same is not', async () => {
    expect(await restart(WIDER, NARROW)).toMatchObject({ widened: false, from: 0, widens: false });
    expect(await restart(WIDER, WIDER)).toMatchObject({ widened: null, from: null, changes: [] });
  });

  it.each<[string, () => unknown]>([
    ['are damaged', () => appendFileSync(path, '{"type":"configuration","at":')],
    ['hold no policy that can be read', rewrite((one) => ({ ...one, policy: { classes: 7 } }))],
    ['were cut', rewrite((one) => ({ ...one, policy: '… 300000 characters' }))],
    ['are of an earlier version, without agents', rewrite(({ agents: _agents, ...one }) => one)],
  ])('whose records %s does not fail', async (name, between) => {
    const isRead = name === 'are damaged';
    const seen = await restart(NARROW, WIDER, between);
    expect(seen).toMatchObject(
      isRead ? { widened: true, from: 0 } : { widened: null, from: null, changes: [] },
    );
  });
});
