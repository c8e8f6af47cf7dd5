import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  callTool,
  type Database,
  type Service,
  startDatabase,
  startService,
  type ToolAnswer,
} from '../../support/service.js';
import { percentile, type Served, SERVED_WITHIN, servedWhile } from '../../support/served-within.js';

/** As deploy/kubernetes says, in MB. */
const HEAP = 400;
const BIG_ROWS = 50;
const FLOODERS = ['ann', 'bob', 'cyd'];
/** Calls of one principal at a time. */
const LANES = 4;
/** How often each of them asks for everything. */
const ROUNDS = 2;
const AGENTS = [...FLOODERS, 'dan'];

const at = '2026-01-01T00:00:00.000Z';
const seed = {
  schemas: [
    {
      className: 'Big',
      fields: {
        body: { type: 'String' },
        numbers: { type: 'Array' },
        parts: { type: 'Array' },
        next: { type: 'Pointer', targetClass: 'Big' },
      },
    },
    { className: 'Small', fields: { title: { type: 'String' } } },
  ],
  users: [],
  roles: [],
  sessions: [],
  objects: {
    Big: Array.from({ length: BIG_ROWS }, (_, index) => ({
      objectId: `b${index}`,
      body: 'x'.repeat(700_000),
      numbers: [index],
      parts: Array.from({ length: 60 }, (_part, part) => ({
        __type: 'Pointer',
        className: 'Big',
        objectId: `b${part % BIG_ROWS}`,
      })),
      next: { __type: 'Pointer', className: 'Big', objectId: `b${(index + 1) % BIG_ROWS}` },
      createdAt: at,
    })),
    Small: Array.from({ length: 20 }, (_, index) => ({
      objectId: `s${index}`,
      title: `T${index}`,
      createdAt: at,
    })),
  },
};

let database: Database;
let service: Service;
beforeAll(async () => {
  database = await startDatabase(seed);
  service = await startService({
    config: {
      agents: Object.fromEntries(
        AGENTS.map((name) => [name, { permissions: 'readonly', rateLimit: 1_000_000 }]),
      ),
      auth: AGENTS.map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: { unlistedClasses: 'allow', classes: { Big: {}, Small: {} } },
    },
    // On a busy machine the embedded database may get no time for a while; a MongoDB would answer heartbeats and new
    // connections meanwhile.
    env: {
      MONGODB_URI: `${database.uri}${database.uri.includes('?') ? '&' : '/?'}heartbeatFrequencyMS=120000&minPoolSize=90`,
      NODE_OPTIONS: `--max-old-space-size=${HEAP}`,
    },
  });
}, 120_000);

const call = (agent: string, tool: string, args: object): Promise<ToolAnswer> =>
  callTool(service, tool, args, { 'X-MCP-API-Key': `key-of-${agent}` });
const pipeline = (...stages: object[]) => ({ class_name: 'Big', pipeline: stages });
const range = (count: number) => ({ $range: [0, count] });
const rows = (count: number) => [{ $limit: 1 }, { $project: { i: range(count) } }, { $unwind: '$i' }];

/** Few bytes each; what they ask for is hundreds of megabytes. */
const SHAPES: Record<string, { readonly tool: string; readonly args: object }> = {
  'ranges in every row': {
    tool: 'aggregate',
    args: pipeline(...rows(200), { $project: { x: range(150_000) } }, { $limit: 200 }),
  },
  'one list of millions': {
    tool: 'aggregate',
    args: pipeline({ $limit: 1 }, { $project: { x: range(600_000) } }),
  },
  'a list of empty objects': {
    tool: 'aggregate',
    args: pipeline(
      { $limit: 1 },
      { $project: { x: { $map: { input: range(300_000), as: 'n', in: { a: {} } } } } },
    ),
  },
  'a list of dates': {
    tool: 'aggregate',
    args: pipeline(
      { $limit: 1 },
      { $project: { x: { $map: { input: range(300_000), as: 'n', in: { at: '$createdAt' } } } } },
    ),
  },
  'whole rows in groups': {
    tool: 'aggregate',
    args: pipeline({ $group: { _id: null, all: { $push: '$$ROOT' } } }),
  },
  'a group for each row and number': {
    tool: 'aggregate',
    args: pipeline(
      ...rows(60),
      { $project: { x: range(20_000) } },
      { $group: { _id: '$x', n: { $sum: 1 } } },
    ),
  },
  'a join of everything with everything': {
    tool: 'aggregate',
    args: pipeline({ $lookup: { from: 'Big', pipeline: [], as: 'all' } }),
  },
  'a join that is unwound': {
    tool: 'aggregate',
    args: pipeline({ $lookup: { from: 'Big', pipeline: [{ $limit: 20 }], as: 'all' } }, { $unwind: '$all' }),
  },
  facets: {
    tool: 'aggregate',
    args: pipeline({
      $facet: Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`f${index}`, [{ $limit: 50 }]])),
    }),
  },
  'a walk along pointers': {
    tool: 'aggregate',
    args: pipeline({
      $graphLookup: {
        from: 'Small',
        startWith: '$objectId',
        connectFromField: 'title',
        connectToField: 'title',
        as: 'all',
      },
    }),
  },
  unions: {
    tool: 'aggregate',
    args: pipeline(...Array.from({ length: 12 }, () => ({ $unionWith: { coll: 'Big', pipeline: [] } }))),
  },
  'sets that are united': {
    tool: 'aggregate',
    args: pipeline(...rows(40), { $project: { x: { $setUnion: [range(20_000), range(10_000)] } } }),
  },
  'texts that grow': {
    tool: 'aggregate',
    args: pipeline(...rows(300), {
      $project: {
        x: {
          $reduce: { input: range(18), initialValue: 'xxxx', in: { $concat: ['$$value', '$$value'] } },
        },
      },
    }),
  },
  'wide includes': {
    tool: 'query_class',
    args: { class_name: 'Big', limit: 50, include: ['parts', 'next'] },
  },
  'deep includes': {
    tool: 'query_class',
    args: { class_name: 'Big', limit: 50, include: ['next.next.next'] },
  },
  'large rows by id': {
    tool: 'get_objects',
    args: { class_name: 'Big', ids: Array.from({ length: BIG_ROWS }, (_, index) => `b${index}`) },
  },
  'an export': { tool: 'export_data', args: { class_name: 'Big', format: 'csv', limit: 1000 } },
  'an export of a pipeline': {
    tool: 'export_data',
    args: { ...pipeline(...rows(200), { $project: { x: range(150_000) } }), format: 'csv' },
  },
  'every value of a column': { tool: 'distinct', args: { class_name: 'Big', field: 'body' } },
};

const SERVED = ['invalid_query', 'rate_limited', 'timeout', 'invalid_argument', undefined];

const residentMegabytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

describe(`with ${HEAP} MB of heap`, () => {
  it.each(Object.entries(SHAPES))(
    'an answer that asks for too much ends the call, not the process: %s',
    async (_title, { tool, args }) => {
      const answer = await call('ann', tool, args);
      expect(answer.wire.length).toBeLessThan(16 * 1024 * 1024);
      expect(SERVED).toContain(answer.code);
      if (answer.isError) expect(answer.text).not.toMatch(/internal error|heap|mongo/i);
      expect(service.isRunning()).toBe(true);
    },
    60_000,
  );

  it('what is refused says what to write instead', async () => {
    const answer = await call('ann', 'aggregate', SHAPES['ranges in every row']?.args ?? {});
    expect(answer).toMatchObject({ isError: true, code: 'invalid_query', details: { kind: 'answer_size' } });
    expect(answer.text).toMatch(/32 MiB.*\$limit.*\$project/s);
    const whole = await call('ann', 'query_class', { class_name: 'Big', limit: 50, keys: ['numbers'] });
    expect(whole.data['results']).toHaveLength(50);
  });

  const small = () => call('dan', 'query_class', { class_name: 'Small', limit: 5 });

  /** All of them at once by several principals, and how long the small calls of another one take meanwhile. */
  async function flood(): Promise<{ answers: ToolAnswer[]; served: Served<ToolAnswer>[] }> {
    let flooding = true;
    const answers: ToolAnswer[] = [];
    const lanes = FLOODERS.flatMap((agent) => {
      const left = Array.from({ length: ROUNDS }, () => Object.values(SHAPES)).flat();
      return Array.from({ length: LANES }, async () => {
        for (let next = left.shift(); next; next = left.shift())
          answers.push(await call(agent, next.tool, next.args));
      });
    });
    const others = servedWhile(service, () => flooding, small);
    await Promise.all(lanes).finally(() => (flooding = false));
    return { answers, served: await others };
  }

  it('a flood of all of them by several principals leaves the process up; half of the small calls of another one take under 2 s, and 95 of 100 in the best of three floods; its memory comes back', async () => {
    await Promise.all(Array.from({ length: 90 }, small));
    let longest = Infinity;
    for (let attempt = 0; attempt < 3 && longest > SERVED_WITHIN; attempt += 1) {
      const { answers, served } = await flood();
      expect(service.isRunning()).toBe(true);
      expect(answers).toHaveLength(ROUNDS * FLOODERS.length * Object.keys(SHAPES).length);
      const failed = served.filter(({ answer }) => answer.isError);
      expect(failed.map(({ answer, milliseconds }) => `${answer.text} after ${milliseconds} ms`).join()).toBe(
        '',
      );
      const waits = served.map(({ milliseconds }) => milliseconds);
      expect(percentile(waits, 50)).toBeLessThan(SERVED_WITHIN);
      longest = percentile(waits, 95);
    }
    expect(longest).toBeLessThan(SERVED_WITHIN);
    const after = await call('ann', 'aggregate', pipeline({ $limit: 2 }, { $project: { numbers: 1 } }));
    expect(after.isError).toBe(false);
    await expect
      .poll(() => residentMegabytes(service.pid), { timeout: 30_000, interval: 500 })
      .toBeLessThan(HEAP);
  }, 600_000);
});
