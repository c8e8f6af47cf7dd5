import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DatabaseView, viewDatabase } from '../../support/database-dump.js';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const agent = { permissions: 'admin', tenantId: 'acme', rateLimit: 1_000_000 };
const AGENTS = { direct: agent, proposed: { ...agent, writes: 'proposed' } };

let database: Database;
let view: DatabaseView;
const services: Record<'none' | 'all', Service> = {} as Record<'none' | 'all', Service>;

beforeAll(async () => {
  database = await startDatabase(POSTS_SEED);
  view = viewDatabase(database.uri);
  for (const record of ['none', 'all'] as const)
    services[record] = await startService({
      config: {
        server: { stateKey: 'a key of thirty-two characters, or more' },
        agents: AGENTS,
        auth: Object.keys(AGENTS).map((name) => ({ apiKey: `key-of-${name}`, agent: name })),
        policy: POSTS_POLICY,
        database: { uri: database.uri, name: 'parley' },
        changes: { record },
      },
      env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
    });
}, 90_000);
afterAll(async () => {
  await Promise.all(Object.values(services).map((service) => service.stop()));
  await view.close();
  await database.stop();
});

/** Commands that the database has received, as it counts them itself. */
async function countCommands(): Promise<number> {
  const { opcounters } = await view.client.db('admin').command({ serverStatus: 1 });
  return Object.values(opcounters as Record<string, number>).reduce((sum, count) => sum + Number(count), 0);
}

/** Round trips of one write that an earlier one has prepared: indexes, and what is read once. */
async function countTrips(
  record: 'none' | 'all',
  name: keyof typeof AGENTS,
  write: (n: number) => readonly [tool: string, args: object],
): Promise<number> {
  const send = async (n: number) => {
    const answer = await callTool(services[record], ...write(n), { 'X-MCP-API-Key': `key-of-${name}` });
    expect(answer).toMatchObject({ isError: false });
  };
  await send(1);
  const before = await countCommands();
  await send(2);
  return (await countCommands()) - before - 1;
}

const update = (n: number) =>
  ['update_object', { class_name: 'Post', object_id: `p0${n * 3}`, fields: { title: 'New' } }] as const;
const removeAfter = (last: number) => (n: number) =>
  ['delete_object', { class_name: 'Post', object_id: `p0${last + n}` }] as const;
const create = (n: number) => ['create_object', { class_name: 'Post', fields: { title: `${n}` } }] as const;

describe('Round trips to the database', () => {
  it('of a proposed write are as many as those of a direct one', async () => {
    expect(await countTrips('none', 'direct', update)).toBe(2);
    expect(await countTrips('none', 'proposed', update)).toBe(2);
  });

  it('of a recorded write are one more: the row before comes with it, and a new row with the record', async () => {
    expect(await countTrips('all', 'direct', update)).toBe(3);
    expect(await countTrips('none', 'direct', removeAfter(0))).toBe(2);
    expect(await countTrips('all', 'direct', removeAfter(3))).toBe(3);
    expect(await countTrips('none', 'direct', create)).toBe(1);
    expect(await countTrips('all', 'direct', create)).toBe(2);
  });
});
