import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { percentile, SERVED_WITHIN, servedWhile } from '../../support/served-within.js';
import { POSTS_SEED, POSTS_POLICY } from '../../fixtures/posts.fixture.js';
import {
  callTool,
  type Database,
  type Service,
  startDatabase,
  startService,
  type ToolAnswer,
} from '../../support/service.js';

const SLEEPING = fileURLToPath(new URL('../../fixtures/plugins/sleeping.mjs', import.meta.url));
const CONFIG = {
  agents: Object.fromEntries(
    ['greedy', 'modest'].map((name) => [name, { rateLimit: 1_000_000, tenantId: 'acme' }]),
  ),
  auth: ['greedy', 'modest'].map((agent) => ({ apiKey: agent, agent })),
  plugins: [SLEEPING],
  policy: POSTS_POLICY,
};
const as = (agent: string) => ({ 'X-MCP-API-Key': agent });

/** Some hundred thousand rows made of one, and one that comes back. */
const SLOW = {
  class_name: 'Post',
  pipeline: [
    { $limit: 1 },
    { $project: { i: { $range: [0, 300] } } },
    { $unwind: '$i' },
    { $project: { j: { $range: [0, 300] } } },
    { $unwind: '$j' },
    { $group: { _id: '$j', total: { $sum: 1 } } },
    { $limit: 1 },
  ],
};

const ROUTES: [string, (database: Database) => Record<string, string>, object][] = [
  ['the embedded database', () => ({}), { seed: POSTS_SEED }],
  ['a database of its own', ({ uri }) => ({ MONGODB_URI: uri }), {}],
];

describe.each(ROUTES)('one principal with slow calls, on %s', (_, env, options) => {
  let database: Database;
  let service: Service;
  beforeAll(async () => {
    database = await startDatabase(POSTS_SEED);
    service = await startService({ ...options, config: CONFIG, env: env(database) });
  });
  afterAll(async () => {
    await service.stop();
    await database.stop();
  });

  /** Small calls of another one while a crowd of slow ones is under way. */
  const beside = async (slow: () => Promise<ToolAnswer>) => {
    let flooding = true;
    const answers: ToolAnswer[] = [];
    const flood = Array.from({ length: 70 }, async () => {
      while (flooding) {
        const answer = await slow();
        answers.push(answer);
        if (answer.code === 'rate_limited') await new Promise((resolve) => setTimeout(resolve, 200));
      }
    });
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    let left = 12;
    const served = await servedWhile(
      service,
      () => (left -= 1) > 0,
      () => callTool(service, 'query_class', { class_name: 'Post', limit: 1 }, as('modest')),
    );
    flooding = false;
    await Promise.all(flood);
    const waits = served.map(({ milliseconds }) => milliseconds);
    return { small: served.map(({ answer }) => answer), median: percentile(waits, 50), answers };
  };

  it('leaves room for the small calls of others while its tools are slow: half take under 2 s', async () => {
    const { small, median, answers } = await beside(() =>
      callTool(service, 'sleep', { seconds: 1 }, as('greedy')),
    );
    expect(small.filter(({ isError }) => isError)).toEqual([]);
    expect(median).toBeLessThan(SERVED_WITHIN);
    const refused = answers.find(({ code }) => code === 'rate_limited');
    expect(refused?.text).toMatch(
      /^Too many calls at once: 20 of this caller run and others wait\. Retry after \d+\.\ds, with fewer at once$/,
    );
    expect(refused?.wire).toMatch(/"parse\.retry_after":\d/);
    expect(answers.some(({ data }) => data['slept'] === 1)).toBe(true);
  }, 60_000);

  it('leaves room for the small calls of others while its pipelines are slow: half take under 2 s', async () => {
    const { small, median, answers } = await beside(() => callTool(service, 'aggregate', SLOW, as('greedy')));
    expect(small.filter(({ isError }) => isError)).toEqual([]);
    expect(median).toBeLessThan(SERVED_WITHIN);
    expect(answers.some(({ isError }) => !isError)).toBe(true);
  }, 120_000);

  it('leaves room on streams too', async () => {
    const call = async (agent: string, name: string, args: object) => {
      const response = await fetch(service.url, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          Accept: 'application/json, text/event-stream',
          ...as(agent),
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name, arguments: args },
        }),
      });
      return { status: response.status, text: await response.text() };
    };
    const slow = Array.from({ length: 120 }, () => call('greedy', 'sleep', { seconds: 2 }));
    await new Promise((resolve) => setTimeout(resolve, 500));
    const { status, text } = await call('modest', 'count_objects', { class_name: 'Post' });
    expect([status, text.includes('"count":')]).toEqual([200, true]);
    await Promise.all(slow);
  }, 60_000);
});
