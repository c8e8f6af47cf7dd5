import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';
import { POSTS_SEED, POSTS_CONFIG } from '../../fixtures/posts.fixture.js';

let database: Database;
let service: Service;
let admin: MongoClient;
beforeAll(async () => {
  database = await startDatabase(POSTS_SEED);
  service = await startService({ config: POSTS_CONFIG, env: { MONGODB_URI: database.uri } });
  admin = new MongoClient(database.uri);
});
afterAll(async () => {
  await admin.close();
  await service.stop();
  await database.stop();
});

async function commandsSent(): Promise<number> {
  const { opcounters } = await admin.db('admin').command({ serverStatus: 1 });
  return Number(opcounters.query) + Number(opcounters.command) + Number(opcounters.getmore);
}

const CALLS: readonly [tool: string, args: Record<string, unknown>][] = [
  ['query_class', { limit: 1000 }],
  ['query_class', { include: ['author'], keys: ['title', 'author'] }],
  ['count_objects', {}],
  ['get_object', { object_id: 'p01' }],
  ['get_objects', { ids: ['p01', 'p02'] }],
  ['get_sample_objects', {}],
  ['aggregate', { pipeline: [{ $group: { _id: '$status', n: { $sum: 1 } } }] }],
];

const failFinds = (data: Record<string, unknown>, mode: unknown = { times: 1 }) =>
  admin
    .db('admin')
    .command({ configureFailPoint: 'failCommand', mode, data: { failCommands: ['find'], ...data } });

describe('a call', () => {
  it.each(CALLS)('of %s with %j sends exactly one command to the database', async (tool, args) => {
    const call = () => callTool(service, tool, { class_name: 'Post', ...args });
    expect((await call()).isError).toBe(false);
    const before = await commandsSent();
    await call();
    // Reading the counters is one command itself.
    expect((await commandsSent()) - before - 1).toBe(1);
  });

  it('carries its tool, its correlation id and its deadline to the database, and ends there when the caller goes away', async () => {
    const running = async () => {
      const { inprog } = await admin.db('admin').command({ currentOp: 1 });
      const operations = inprog as { command?: Record<string, unknown> }[];
      return operations.map(({ command }) => command).filter((command) => command?.['aggregate'] === 'Post');
    };
    const everyone = [{ $lookup: { from: 'Post', pipeline: [], as: 'other' } }, { $unwind: '$other' }];
    const caller = new AbortController();
    const call = fetch(service.url, {
      method: 'POST',
      signal: caller.signal,
      headers: { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'scenario-17' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'aggregate',
          arguments: {
            class_name: 'Post',
            pipeline: [...everyone, ...everyone, ...everyone, ...everyone, { $count: 'n' }],
          },
        },
      }),
    });
    const ended = call.then(
      () => 'answered',
      () => 'gone',
    );
    await expect
      .poll(running, { timeout: 10_000 })
      .toMatchObject([{ comment: 'parley:aggregate:scenario-17', maxTimeMS: 55_000 }]);
    caller.abort();
    expect(await ended).toBe('gone');
    await expect.poll(running, { timeout: 10_000 }).toEqual([]);
  });

  it('that the database gives up on is answered as a time-out, with the budget and how to ask for less', async () => {
    await failFinds({ errorCode: 50 });
    const answer = await callTool(service, 'query_class', { class_name: 'Post' });
    expect(answer).toMatchObject({
      isError: true,
      code: 'timeout',
      text:
        'Query timed out at the database (max_time_ms=25000). Narrow the filter, or add an index for it: explain_query shows ' +
        'whether one serves it',
    });
  });

  it('whose database fails in any other way shows nothing of it', async () => {
    await failFinds({ errorCode: 8000 });
    const answer = await callTool(service, 'query_class', { class_name: 'Post' });
    expect(answer).toMatchObject({ isError: true, code: 'parse_error' });
    expect(answer.wire).not.toMatch(/8000|failCommand|failpoint|Mongo/i);
  });
});
