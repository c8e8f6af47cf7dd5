import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AS, TENANT_NOTES_SEED, TENANT_NOTES_CONFIG, SECRET } from '../../fixtures/tenant-notes.fixture.js';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, GATES_OPEN, type Service, startService } from '../../support/service.js';

let parse: ParseUnderTest;
let services: Readonly<Record<'parse_server' | 'mongo_direct', Service>>;

beforeAll(async () => {
  parse = await ParseUnderTest.start();
  await parse.fill(TENANT_NOTES_SEED);
  const database = { uri: parse.databaseUri, name: parse.databaseName };
  const config = { ...TENANT_NOTES_CONFIG, parse: parse.config };
  const [lone, both] = await Promise.all([
    startService({ config, env: GATES_OPEN }),
    startService({ config: { ...config, database }, env: GATES_OPEN }),
  ]);
  services = { parse_server: lone, mongo_direct: both };
}, 120_000);
afterAll(async () => {
  await Promise.all(Object.values(services ?? {}).map((service) => service.stop()));
  await parse?.stop();
});

/** Fails where a row of another tenant, or of another user, holds the guess. */
const failsOn = (column: string, guess: unknown) => ({
  $gt: [{ $divide: [1, { $cond: [{ $eq: [`$${column}`, guess] }, 0, 1] }] }, 5],
});

const CALLERS: readonly (readonly ['parse_server' | 'mongo_direct', Record<string, string>])[] = [
  ['parse_server', AS.operator],
  ['mongo_direct', AS.operator],
  ['mongo_direct', AS.ada],
];

describe.each(CALLERS)('pipelines by %s', (route, headers) => {
  const aggregate = (...pipeline: object[]) =>
    callTool(services[route], 'aggregate', { class_name: 'Note', pipeline }, headers);

  it.each([
    ['a row of another tenant', 'title', SECRET],
    ['a row of another user', 'title', 'of bob'],
    ['no row', 'title', 'nobody'],
  ])('refuse a condition that fails on %s, and say the same', async (_, column, guess) => {
    const answer = await aggregate({ $match: { $or: [{ $expr: failsOn(column, guess) }, { rank: 99 }] } });
    expect(answer.code).toBe('invalid_query');
    expect(answer.text.replaceAll(guess, '…')).toContain('$addFields');
  });

  it.each([SECRET, 'nobody'])('compute it first, on rows of the caller alone (%#)', async (guess) => {
    for (let call = 0; call < 4; call++) {
      const answer = await aggregate(
        { $addFields: { computed: failsOn('title', guess) } },
        { $match: { computed: false } },
        { $project: { title: 1 } },
      );
      expect(answer).toMatchObject({ isError: false, data: { route } });
      expect(answer.wire).not.toContain(SECRET);
    }
  });

  it('answer conditions that cannot fail', async () => {
    const size = { $size: { $cond: [{ $isArray: '$tags' }, '$tags', []] } };
    const answer = await aggregate({
      $match: { $expr: { $and: [{ $eq: [size, 0] }, { $eq: ['$rank', 1] }] } },
    });
    expect(answer.data['results']).toMatchObject([{ title: 'open' }]);
  });
});
