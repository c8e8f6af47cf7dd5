import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ClassAccess, FieldNames, type IndexSchema, type Where } from '#policy';
import type { QueryPlan } from '../record-store.js';
import { explain, explanation, mayBeChosen, readableIndexes, refuseCollectionScan } from './query-plan.js';
import type { GovernedCall } from './governed-call.js';

const index = (name: string, ...fields: string[]): IndexSchema => ({ name, fields, unique: false });

function access(readable: readonly string[] | null): ClassAccess {
  return {
    className: 'Post',
    names: new FieldNames(),
    readable: readable && new Set(readable),
    schema: {
      className: 'Post',
      fields: new Map(),
      indexes: [
        index('status_1', 'status'),
        index('status_1_orgId_1', 'status', 'orgId'),
        index('orgId_1_status_1', 'orgId', 'status'),
        index('author_1', 'author.name'),
      ],
      classLevelPermissions: null,
    },
  };
}

/** The indexes of the class that the caller may see. */
const indexesFor = (readable: readonly string[] | null) =>
  readableIndexes(access(readable), { listIndexes: ({ indexes }) => Promise.resolve(indexes) });

const scan = (indexName: string) => ({
  stage: 'FETCH',
  filter: { orgId: 'acme' },
  inputStage: {
    stage: 'IXSCAN',
    indexName,
    direction: 'forward',
    keyPattern: { orgId: 1 },
    indexBounds: { orgId: ['["acme", "acme"]'] },
  },
});

describe('the explanation of a plan', () => {
  it('keeps stages and directions, and drops filters, bounds and key patterns', async () => {
    expect(explanation(scan('status_1'), await indexesFor(null), { status: 'live' })).toEqual({
      stage: 'FETCH',
      inputStage: { stage: 'IXSCAN', direction: 'forward', indexName: 'status_1' },
    });
  });

  it.each([
    ['status_1', ['status'], { status: 'live' }, true],
    ['status_1', null, { $or: [{ likes: 1 }, { $and: [{ status: 'live' }] }] }, true],
    ['author_1', ['author'], { 'author.name': 'Ann' }, true],
    ['status_1', null, {}, false],
    ['status_1', null, { likes: 1 }, false],
    ['status_1_orgId_1', ['status'], { status: 'live' }, false],
    ['orgId_1_status_1', null, { status: 'live' }, false],
    ['not_in_the_schema', null, { status: 'live' }, false],
  ])('names %s (readable %j) for %j: %s', async (name, readable, asked, named) => {
    const answer = JSON.stringify(explanation(scan(name), await indexesFor(readable), asked));
    expect(answer.includes(name)).toBe(named);
  });

  it.each([
    [{ 'author.name': 'Ann' }, false],
    [{ likes: 1 }, false],
    [{ status: 'live' }, true],
    [{ 'author.name': 'Ann', $and: [{ orgId: 'acme' }] }, true],
  ])('tells whether rows of others decide which index serves %j: %s', async (where, isChosen) => {
    expect(mayBeChosen(await indexesFor(null), where)).toBe(isChosen);
  });

  it('follows branches and shards', () => {
    const plan = {
      stage: 'SHARD_MERGE',
      shards: [
        { shardName: 's1', host: 'db1', winningPlan: { queryPlan: { stage: 'COLLSCAN', filter: { a: 1 } } } },
        {
          shardName: 's2',
          winningPlan: { stage: 'OR', inputStages: [{ stage: 'COLLSCAN' }, { stage: 'IXSCAN' }] },
        },
      ],
    };
    expect(explanation(plan, [], {})).toEqual({
      stage: 'SHARD_MERGE',
      inputStages: [
        { stage: 'COLLSCAN' },
        { stage: 'OR', inputStages: [{ stage: 'COLLSCAN' }, { stage: 'IXSCAN' }] },
      ],
    });
  });

  it('never repeats a value or a name of a plan that the caller did not explain', async () => {
    const indexes = await indexesFor(null);
    const plan = fc.letrec<{ node: Record<string, unknown> }>((tie) => ({
      node: fc.record(
        {
          stage: fc.constantFrom('FETCH', 'IXSCAN', 'COLLSCAN', 'OR'),
          filter: fc.constant({ tenant: 'SECRET', _rperm: { $in: ['SECRET'] } }),
          indexName: fc.constantFrom('SECRET_1', 'orgId_1_status_1'),
          keyPattern: fc.constant({ SECRET: 1 }),
          indexBounds: fc.constant({ SECRET: ['SECRET'] }),
          parsedTextQuery: fc.constant({ terms: ['SECRET'] }),
          sortPattern: fc.constant({ SECRET: 1 }),
          transformBy: fc.constant({ SECRET: 1 }),
          inputStage: fc.option(tie('node'), { maxDepth: 4 }),
          inputStages: fc.array(tie('node'), { maxLength: 2 }),
          shards: fc.array(fc.record({ host: fc.constant('SECRET'), winningPlan: tie('node') }), {
            maxLength: 1,
          }),
        },
        { requiredKeys: ['stage', 'filter'] },
      ),
    })).node;
    fc.assert(
      fc.property(plan, (node) => {
        expect(JSON.stringify(explanation(node, indexes, { status: 'live' }))).not.toMatch(/SECRET|orgId/);
      }),
    );
  });
});

describe('a subquery that found nothing', () => {
  const nothing = { $and: [{ org: 'acme' }, { $or: [{ objectId: { $in: [] } }, { author: { $nin: [] } }] }] };
  const something = {
    $and: [{ org: 'acme' }, { $or: [{ objectId: { $in: ['a1'] } }, { author: { $nin: ['a2'] } }] }],
  };
  /** The plan of a database that treats an empty list apart, as MongoDB does. */
  const planned = ({ where }: { where: unknown }) =>
    Promise.resolve({ stage: JSON.stringify(where).includes('[]') ? 'EOF' : 'COLLSCAN' });
  const call = {
    agent: { identity: { kind: 'master' } },
    scope: { policy: { switches: { exposeExplain: false } } },
    read: planned,
    readAsOperator: planned,
    listIndexes: () => Promise.resolve([]),
  } as unknown as GovernedCall;

  it('is explained as one that found a row', async () => {
    const explained = (where: Where) => {
      const rules = { judgeWhere: () => ({}), composePredicate: () => Promise.resolve({ where }) };
      return explain(call, rules, access(null), {});
    };
    expect(await explained(nothing)).toEqual({ stage: 'COLLSCAN' });
    expect(await explained(nothing)).toEqual(await explained(something));
  });

  it('is refused as one that found a row, where the collection would be read whole', async () => {
    const asked = (where: Where) => refuseCollectionScan(call, { className: 'Post', where });
    await expect(asked(nothing)).rejects.toMatchObject({ refusal: { body: { refused: true } } });
    await expect(asked(something)).rejects.toMatchObject({ refusal: { body: { refused: true } } });
  });
});

describe('a query whose plan reads a whole collection is refused', () => {
  const asked = (plan: QueryPlan) => {
    const call = {
      scope: { policy: { switches: { exposeExplain: false } } },
      readAsOperator: () => Promise.resolve(plan),
    } as unknown as GovernedCall;
    return refuseCollectionScan(call, { className: 'Post', where: { status: 'live' } });
  };
  const scanned = { stage: 'COLLSCAN', filter: { status: 'live' } };
  const filtered = { stage: 'SHARDING_FILTER', inputStage: scanned };

  it.each<[string, QueryPlan]>([
    ['at the top', scanned],
    ['behind another stage', { stage: 'SORT', inputStage: scanned }],
    ['in a branch', { stage: 'OR', inputStages: [scan('status_1'), scanned] }],
    ['at the only shard', { stage: 'SINGLE_SHARD', shards: [{ shardName: 's1', winningPlan: filtered }] }],
    [
      'at one of several shards',
      {
        stage: 'SHARD_MERGE',
        shards: [{ winningPlan: scan('status_1') }, { winningPlan: { queryPlan: filtered } }],
      },
    ],
  ])('%s', async (_, plan) => {
    await expect(asked(plan)).rejects.toMatchObject({ refusal: { body: { refused: true } } });
  });

  it('unless every shard uses an index', async () => {
    const shards = [{ winningPlan: scan('status_1') }, { winningPlan: { queryPlan: scan('status_1') } }];
    await expect(asked({ stage: 'SHARD_MERGE', shards })).resolves.toBeUndefined();
  });
});
