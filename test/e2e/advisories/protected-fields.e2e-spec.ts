import { beforeAll, describe, expect, it } from 'vitest';
import { callTool, rpc, type Service, startService } from '../../support/service.js';
import {
  clientQuestions,
  constraintQuestions,
  expectNoOracle,
  filterQuestions,
  isRefused,
  type Question,
  stageQuestions,
} from './questions.js';
import {
  AGENTS,
  ATTACKERS,
  HIDDEN,
  OPERATOR,
  PROTECTED_ROWS_SEED,
  PROTECTED_ROWS_CONFIG,
  withKey,
  withSession,
} from '../../fixtures/protected-rows.fixture.js';

let service: Service;
beforeAll(async () => {
  service = await startService({ config: PROTECTED_ROWS_CONFIG, seed: PROTECTED_ROWS_SEED });
});

type Where = Record<string, unknown>;
/** A constraint on the protected field that holds for a row when the guess is right. */
type Oracle = readonly [form: string, of: (guess: string) => Where];

const WRONG = 'WRONG-5c1e-behind-a-guard';
const code = (guess: string): Where => ({ secret: { code: guess } });
const deep = (where: Where): Where => ({ $and: [{ $or: [{ $nor: [{ $and: [where] }] }] }] });

const pair = (questions: (where: Where) => Question[], of: Oracle[1]) =>
  [questions(of(HIDDEN)), questions(of(WRONG))] as const;

function refusesEverywhere(oracles: readonly Oracle[]): void {
  describe.each(AGENTS)('asked by %s', (_, headers) => {
    it.each(oracles)('%s', (_form, of) => expectNoOracle(service, headers, pair(filterQuestions, of)));
  });
  it.each(oracles)('asked by a client without a master key: %s', (_form, of) => {
    const [, headers] = ATTACKERS[3] as (typeof ATTACKERS)[number];
    return expectNoOracle(
      service,
      headers,
      pair((where) => clientQuestions(constraintQuestions(where)), of),
    );
  });
}

describe('the attacks ask something', () => {
  it.each(AGENTS)('a filter on another field is answered to %s in every place', async (_, headers) => {
    for (const [way, tool, args] of filterQuestions({ $or: [{ title: 'one' }] })) {
      const answer = await callTool(service, tool, args, headers);
      // Plans are not for those who only stand for somebody.
      const expected = tool === 'explain_query' && headers !== AGENTS[0]?.[1];
      expect([way, isRefused(answer)]).toEqual([way, expected]);
    }
  });

  it('to the master key a right guess looks different from a wrong one', async () => {
    for (const operator of ['$or', '$and'] as const) {
      const counts = [HIDDEN, WRONG].map(async (guess) => {
        const where = { [operator]: [{ 'secret.code': guess }] };
        const answer = await callTool(service, 'count_objects', { class_name: 'Dossier', where }, OPERATOR);
        return answer.data['count'];
      });
      expect(await Promise.all(counts)).toEqual([1, 0]);
    }
  });
});

describe('GHSA-72hp-qff8-4pvv: protected fields inside logical operators', () => {
  refusesEverywhere([
    ['in $or', (guess) => ({ $or: [{ 'secret.code': guess }] })],
    ['in $and', (guess) => ({ $and: [{ title: 'one' }, code(guess)] })],
    ['in $nor', (guess) => ({ $nor: [{ 'secret.code': guess }] })],
    ['four levels down', (guess) => deep({ 'secret.code': { $ne: guess } })],
  ]);
});

describe('GHSA-r2m8-pxm9-9c4g: protected fields by dot notation, in filters and in orders', () => {
  refusesEverywhere([
    ['a member', (guess) => ({ 'secret.code': guess })],
    ['a member of a member', (guess) => ({ 'secret.inner.deep': guess })],
    ['a member below an operator', (guess) => ({ 'secret.code': { $in: [guess] } })],
  ]);

  it.each(ATTACKERS)('%s cannot sort by it, or by a member of it', async (_, headers) => {
    for (const order of ['secret', '-secret', 'secret.score', '-secret.inner.deep', 'title,secret.score']) {
      const answer = await callTool(service, 'query_class', { class_name: 'Dossier', order }, headers);
      expect([order, answer.code, answer.details]).toMatchObject([
        order,
        'access_denied',
        { kind: 'protected_field_ref' },
      ]);
    }
  });

  it.each(AGENTS)('%s cannot sort, group, bucket or list by a member of it', async (_, headers) => {
    const questions: Question[] = [
      ...stageQuestions({ $sort: { 'secret.score': 1 } }),
      ...stageQuestions({ $group: { _id: '$secret.score' } }),
      ...stageQuestions({ $addFields: { x: { $gt: ['$secret.score', 1] } } }),
      ...stageQuestions({ $bucket: { groupBy: '$secret.score', boundaries: [0, 2], default: 'x' } }),
      ['a grouping', 'group_by', { class_name: 'Dossier', field: 'secret.score' }],
      ['a list', 'distinct', { class_name: 'Dossier', field: 'secret.score' }],
      [
        'an average',
        'group_by',
        { class_name: 'Dossier', field: 'title', operation: 'avg', value_field: 'secret.score' },
      ],
    ];
    for (const [way, tool, args] of questions) {
      const answer = await callTool(service, tool, args, headers);
      expect([way, isRefused(answer)]).toEqual([way, true]);
    }
  });

  it.each(ATTACKERS)('%s is shown it by no projection of a member', async (_, headers) => {
    for (const keys of [['secret'], ['secret.code'], ['secret.inner.deep', 'title']]) {
      const answer = await callTool(service, 'query_class', { class_name: 'Dossier', keys }, headers);
      expect(answer.isError).toBe(false);
      expect(answer.wire).not.toContain(HIDDEN);
    }
  });
});

// Subscriptions of Parley take no filter. What answers yes or no without a row, as an event would, are counts,
// plans, and questions put through another class.
describe('GHSA-j7mm-f4rv-6q6q: protected fields shown by an answer without a row', () => {
  refusesEverywhere([
    ['by a pattern', (guess) => ({ 'secret.code': { $regex: `^${guess.slice(0, 1)}` } })],
    ['by a pattern in $or', (guess) => ({ $or: [{ 'secret.code': { $regex: guess } }] })],
    ['by presence', (guess) => ({ secret: { $exists: guess === HIDDEN } })],
    ['by presence of a member', (guess) => ({ 'secret.code': { $exists: guess === HIDDEN } })],
    ['whole', (guess) => ({ secret: { $ne: { code: guess } } })],
  ]);

  it('a subscription takes no filter', async () => {
    const where = `where={"secret.code":"${HIDDEN}"}`;
    for (const uri of [
      `parse://Dossier?${where}`,
      `parse://Dossier/samples?${where}`,
      `parse://Dossier#${where}`,
    ]) {
      const answer = await rpc(service, 'resources/subscribe', { uri }, withSession('mallory'));
      expect(answer.body.error).toBeDefined();
    }
  });
});

describe('GHSA-mmg8-87c5-jrc2: logical operators over what only looks like a list', () => {
  const like = (operator: string): Oracle[1] => {
    return (guess) => ({ [operator]: { 0: { 'secret.code': guess }, length: 1 } });
  };
  refusesEverywhere([
    ...['$or', '$and', '$nor'].map((operator): Oracle => [operator, like(operator)]),
    ['inside a list', (guess) => ({ $and: [like('$or')(guess)] })],
    ['a list of such', (guess) => ({ $or: [{ 0: { 'secret.code': guess }, length: 1 }] })],
  ]);

  it('are refused as such to the master key too, instead of being evaluated', async () => {
    for (const [way, tool, args] of filterQuestions({ $or: { 0: { title: 'one' }, length: 1 } })) {
      const answer = await callTool(service, tool, args, OPERATOR);
      expect([way, isRefused(answer)]).toEqual([way, true]);
      // In a pipeline it is a stage in a shape that is none.
      expect([way, answer.code]).toEqual([way, 'pipeline' in args ? 'invalid_argument' : 'invalid_query']);
    }
  });
});

describe('GHSA-2m6g-crv8-p3c6: internal and protected fields guessed by patterns', () => {
  const users = (where: Where): Question[] =>
    filterQuestions(where).map(([way, tool, args]) => [
      way,
      tool,
      JSON.parse(
        JSON.stringify(args).replaceAll('"Dossier"', '"_User"').replaceAll('"title"', '"username"'),
      ) as Where,
    ]);

  describe.each([...AGENTS, ['the master key', OPERATOR] as const])('asked by %s', (_, headers) => {
    it.each([
      '_hashed_password',
      '_session_token',
      'sessionToken',
      '_perishable_token',
      '_email_verify_token',
      '_password_history',
      '_auth_data_facebook',
      'authData',
      '_rperm',
      '_wperm',
      '_hashed_password.x',
    ])('%s is no constraint, at any depth', async (field) => {
      for (const where of [
        { [field]: { $regex: '^\\$2' } },
        { $or: [{ [field]: { $exists: true } }] },
        deep({ [field]: { $gt: 'a' } }),
      ]) {
        for (const [way, tool, args] of users(where)) {
          const answer = await callTool(service, tool, args, headers);
          expect([way, isRefused(answer)]).toEqual([way, true]);
        }
      }
    });

    it('no expression computes with it', async () => {
      for (const stage of [
        { $match: { $expr: { $gt: ['$_hashed_password', 'a'] } } },
        { $group: { _id: '$_hashed_password' } },
        { $sort: { _hashed_password: 1 } },
        { $addFields: { x: { $substrCP: ['$_hashed_password', 0, 1] } } },
        { $addFields: { x: { $getField: '_hashed_password' } } },
      ]) {
        const answer = await callTool(
          service,
          'aggregate',
          { class_name: '_User', pipeline: [stage] },
          headers,
        );
        expect([Object.keys(stage), isRefused(answer)]).toEqual([Object.keys(stage), true]);
      }
    });

    it('no answer holds one', async () => {
      for (const [tool, args] of [
        ['query_class', { class_name: '_User' }],
        ['get_object', { class_name: '_User', object_id: 'victim' }],
        ['aggregate', { class_name: '_User', pipeline: [{ $limit: 5 }] }],
        ['aggregate', { class_name: '_User', pipeline: [{ $project: { all: '$$ROOT' } }] }],
        ['export_data', { class_name: '_User', format: 'json' }],
      ] as const) {
        const answer = await callTool(service, tool, args, headers);
        expect(answer.wire).not.toMatch(/\$2[aby]\$|_hashed_password/);
      }
    });
  });

  it('the address of another user is not guessed either', async () => {
    for (const headers of [withSession('mallory'), withKey('guests')]) {
      for (const [way, tool, args] of users({ email: { $regex: '^victim' } })) {
        const answer = await callTool(service, tool, args, headers);
        expect([way, isRefused(answer)]).toEqual([way, true]);
        if (way === 'a find' || way === 'a count' || way === 'a pipeline' || way === 'a join')
          expect([way, answer.details]).toMatchObject([way, { kind: 'protected_field_ref' }]);
      }
    }
  });
});
