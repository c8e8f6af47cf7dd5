import { beforeAll, describe, expect, it } from 'vitest';
import { callTool, type Service, startService } from '../../support/service.js';
import { isRefused, type Question } from './questions.js';
import {
  AGENTS,
  ATTACKERS,
  HIDDEN,
  OPERATOR,
  PROTECTED_ROWS_SEED,
  PROTECTED_ROWS_CONFIG,
} from '../../fixtures/protected-rows.fixture.js';

let service: Service;
beforeAll(async () => {
  service = await startService({ config: PROTECTED_ROWS_CONFIG, seed: PROTECTED_ROWS_SEED });
});

type Where = Record<string, unknown>;
const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const members = (className: string, objectId: string, key: string): Where => ({
  $relatedTo: { object: pointer(className, objectId), key },
});

/** The forms the operator may take: by itself, inside logical operators, and as the oracle for one member. */
const FORMS: readonly (readonly [form: string, of: (related: Where) => Where])[] = [
  ['alone', (related) => related],
  ['in $or', (related) => ({ $or: [related] })],
  ['in $and', (related) => ({ $and: [{ name: { $exists: true } }, related] })],
  ['with the id that is asked about', (related) => ({ objectId: 'p2', ...related })],
  ['in $or with an id', (related) => ({ $or: [{ $and: [related, { objectId: 'p2' }] }] })],
];

const questionsOn = (where: Where): Question[] => [
  ['a find', 'query_class', { class_name: 'Person', where }],
  ['a count', 'count_objects', { class_name: 'Person', where }],
  ['a grouping', 'group_by', { class_name: 'Person', field: 'name', where }],
  ['a list of values', 'distinct', { class_name: 'Person', field: 'name', where }],
  ['an export', 'export_data', { class_name: 'Person', where }],
  [
    'a question to another class',
    'query_class',
    { class_name: 'Dossier', where: { subject: { $inQuery: { className: 'Person', where } } } },
  ],
];

/** How many rows an answer stands for, in whatever form the tool gives it. */
function rowsIn({ data }: { data: Record<string, unknown> }): number {
  if (typeof data['count'] === 'number') return data['count'];
  for (const name of ['results', 'groups', 'values', 'rows'])
    if (Array.isArray(data[name])) return data[name].length;
  const lines = typeof data['output'] === 'string' ? data['output'].trim() : '';
  return lines === '' ? 0 : lines.split('\n').length - 1;
}

describe('GHSA-wmwx-jr2p-4j4r: relations of owners or of columns that the caller may not read', () => {
  it('the attacks ask something: the master key sees the members, everyone those of a readable row', async () => {
    const count = async (where: Where, headers: Record<string, string>) =>
      (await callTool(service, 'count_objects', { class_name: 'Person', where }, headers)).data['count'];
    expect(await count(members('Group', 'private', 'members'), OPERATOR)).toBe(2);
    expect(await count(members('Group', 'readable', 'blocked'), OPERATOR)).toBe(1);
    expect(await count(members('Lodge', 'lodge', 'members'), OPERATOR)).toBe(1);
    for (const [, headers] of ATTACKERS)
      expect(await count(members('Group', 'readable', 'members'), headers)).toBe(1);
  });

  describe.each(AGENTS)('asked by %s', (_, headers) => {
    it.each(FORMS)('a protected relation is refused: %s', async (_form, of) => {
      for (const [way, tool, args] of questionsOn(of(members('Group', 'readable', 'blocked')))) {
        const answer = await callTool(service, tool, args, headers);
        expect([way, answer.details]).toMatchObject([way, { kind: 'protected_field_ref' }]);
      }
    });

    it.each(FORMS)('the relation of a row that may not be read leads nowhere: %s', async (_form, of) => {
      for (const [way, tool, args] of questionsOn(of(members('Group', 'private', 'members')))) {
        const answer = await callTool(service, tool, args, headers);
        expect([way, isRefused(answer), rowsIn(answer)]).toEqual([way, false, 0]);
        const [, , missing] = questionsOn(of(members('Group', 'missing', 'members'))).find(
          ([name]) => name === way,
        ) as Question;
        const { text } = await callTool(service, tool, missing, headers);
        // Some tools repeat the constraint that they were given.
        expect(text.replaceAll('"missing"', '"private"')).toBe(answer.text);
      }
    });

    it.each(FORMS)(
      'the relation of a class whose rows may not be got leads nowhere: %s',
      async (_form, of) => {
        for (const [way, tool, args] of questionsOn(of(members('Lodge', 'lodge', 'members')))) {
          const answer = await callTool(service, tool, args, headers);
          expect([way, answer.details]).toMatchObject([way, { kind: 'clp_denied' }]);
        }
      },
    );

    it('the denial does not show membership either: not even that a user is outside a private group', async () => {
      const where = { $nor: [members('Group', 'private', 'members')] };
      const outside = await callTool(service, 'count_objects', { class_name: 'Person', where }, headers);
      expect([outside.isError, outside.data['count']]).toEqual([false, 3]);
    });

    it('the relation’s own collection is joined by no pipeline', async () => {
      for (const from of ['_Join:members:Group', '_Join:blocked:Group', '_Join:users:_Role']) {
        const joined = { from, let: {}, pipeline: [], as: 'x' };
        for (const stage of [{ $lookup: joined }, { $unionWith: from }, { $unionWith: { coll: from } }]) {
          const answer = await callTool(
            service,
            'aggregate',
            { class_name: 'Person', pipeline: [stage] },
            headers,
          );
          expect([from, isRefused(answer)]).toEqual([from, true]);
        }
      }
    });
  });
});

// Parley has no triggers. What an application would do in one for every query of a class, its agents carry as filters,
// tenants and rights; the attack is a pointer that is followed without them.
describe('GHSA-fcv6-fg5r-jm9q: pointers that are followed past what guards the class behind them', () => {
  const cards = (more: object): Record<string, unknown> => ({ class_name: 'Card', ...more });

  it('the attacks ask something: the rows are there, and a pointer to a released one is followed', async () => {
    const whole = await callTool(service, 'query_class', { class_name: 'Matter' }, OPERATOR);
    expect(whole.data['results']).toHaveLength(3);
    for (const [, headers] of ATTACKERS) {
      const answer = await callTool(service, 'query_class', cards({ include: ['matters'] }), headers);
      const [card] = answer.data['results'] as { matters: { text?: string }[] }[];
      expect(card?.matters.map(({ text }) => text)).toContain('released');
    }
  });

  describe.each(ATTACKERS)('asked by %s', (_, headers) => {
    it.each<[string, string, Record<string, unknown>]>([
      ['a find', 'query_class', cards({})],
      ['a row by id', 'get_object', cards({ object_id: 'c1' })],
      ['rows by ids', 'get_objects', cards({ ids: ['c1'] })],
    ])('an included row meets the filters and rights of its class: %s', async (_way, tool, args) => {
      for (const include of [['matter'], ['matters'], ['matter', 'matters']]) {
        const answer = await callTool(service, tool, { ...args, include }, headers);
        expect([include, answer.isError]).toEqual([include, false]);
        expect(answer.wire).not.toContain(HIDDEN);
      }
    });

    it.each(['sealed', 'locked', 'session.user'])(
      'a pointer into a closed class is not followed: %s',
      async (path) => {
        for (const [tool, args] of [
          ['query_class', cards({})],
          ['get_object', cards({ object_id: 'c1' })],
          ['get_objects', cards({ ids: ['c1'] })],
        ] as const) {
          const answer = await callTool(service, tool, { ...args, include: [path] }, headers);
          expect(answer.wire).not.toContain(HIDDEN);
          if (path !== 'session.user') expect([tool, answer.code]).toEqual([tool, 'access_denied']);
        }
      },
    );

    it('the row behind a pointer is not got by its id either', async () => {
      for (const [className, id] of [
        ['Sealed', 's1'],
        ['Locked', 'l1'],
        ['Matter', 'm2'],
        ['Matter', 'm3'],
      ]) {
        const answer = await callTool(
          service,
          'get_object',
          { class_name: className, object_id: id },
          headers,
        );
        expect([id, answer.isError]).toEqual([id, true]);
      }
    });

    it('the row behind a pointer is not guessed with a question about it', async () => {
      const asked = (className: string, where: Where) =>
        callTool(
          service,
          'count_objects',
          cards({ where: { [className.toLowerCase()]: { $inQuery: { className, where } } } }),
          headers,
        );
      for (const className of ['Sealed', 'Locked'])
        expect((await asked(className, { text: HIDDEN })).code).toBe('access_denied');
      expect((await asked('Matter', { text: HIDDEN })).data['count']).toBe(0);
    });
  });

  describe.each(AGENTS)('joined by %s', (_, headers) => {
    it.each(['sealed', 'locked', 'matter'])('%s', async (field) => {
      const from = field.charAt(0).toUpperCase() + field.slice(1);
      for (const join of [
        { from, localField: field, foreignField: 'objectId', as: 'x' },
        { from, let: {}, pipeline: [], as: 'x' },
      ]) {
        const answer = await callTool(
          service,
          'aggregate',
          cards({ pipeline: [{ $facet: { all: [{ $lookup: join }] } }] }),
          headers,
        );
        expect(answer.wire).not.toContain(HIDDEN);
        if (field !== 'matter') expect(answer.code).toBe('access_denied');
      }
    });
  });
});
