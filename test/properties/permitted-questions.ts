import fc from 'fast-check';
import { ordinary, POOL } from './cell-values.js';
import type { Request } from './asked-service.js';
import { AgentSight } from './sight.js';
import { type Column, COLUMNS, OWN_CLASSES, rowId } from './vocabulary.js';
import type { ClassRules, OwnClass, World } from './world.js';

type Row = Record<string, unknown>;

/** Choices that a question is made of; what they come to depends on the world. */
export interface Choices {
  readonly kind: 'find' | 'count' | 'group' | 'join' | 'distinct' | 'include' | 'groups';
  readonly className: OwnClass;
  readonly limit: number;
  readonly canonical: boolean;
  readonly pointer: number;
}

export const choices: fc.Arbitrary<Choices> = fc.record({
  kind: fc.constantFrom('find', 'count', 'group', 'join', 'join', 'distinct', 'include', 'groups'),
  className: fc.constantFrom(...OWN_CLASSES),
  limit: fc.integer({ min: 1, max: POOL }),
  canonical: fc.boolean(),
  pointer: fc.nat(3),
});

/** A request the rules permit, and what it must be answered with. */
export interface PermittedQuestion {
  readonly request: Request;
  readonly expected: unknown;
  /** What of the answer is compared. */
  readonly read: (data: Row) => unknown;
}

const call = (name: string, args: Row): Request => ({
  method: 'tools/call',
  params: { name, arguments: args },
});
const sorted = (values: readonly unknown[]) => values.map((value) => JSON.stringify(value)).sort();
const rowsIn = (data: Row, key: string) => data[key] as Row[];

/** The title, the number and a pointer of a class: by their place among its columns. */
const firstOf = (className: OwnClass, kind: Column['kind'], nth = 0): Column => {
  const all = COLUMNS[className].filter((column) => column.kind === kind);
  return all[nth % all.length] as Column;
};

/** Worked out over the rows as they were made, by the plainest means. Null: the rules do not permit such a question here. */
export function permittedQuestion(world: World, chosen: Choices): PermittedQuestion | null {
  const sight = new AgentSight(world);
  const { className, kind, limit, canonical } = chosen;
  const title = firstOf(className, 'text');
  const number = firstOf(className, 'number');
  const operation = kind === 'count' ? 'count' : 'find';
  const asks = [title, number].every(({ name }) => sight.mayAsk(className, name));
  if (!asks || !sight.permits(className, operation)) return null;

  const value = (index: number, { name }: Column) => world.rows[className][index]?.values[name] ?? null;
  const shownValue = (index: number, column: Column) => {
    const chosen = value(index, column);
    return chosen === null ? null : ordinary(column, chosen);
  };
  const inView = kind === 'distinct' || kind === 'groups' || kind === 'include' ? true : canonical;
  const rows = sight.rowsFor(className, operation, inView);
  const where = { [number.name]: { $lte: limit } };
  const matching = rows.filter((index) => {
    const own = value(index, number);
    return own !== null && own + 1 <= limit;
  });
  const asked = { class_name: className, apply_canonical_filter: canonical };

  switch (kind) {
    case 'find':
      return {
        request: call('query_class', { ...asked, where, keys: [title.name], order: 'objectId' }),
        expected: matching.map((index) => [rowId(className, index), shownValue(index, title)]),
        read: (data) => rowsIn(data, 'results').map((row) => [row['objectId'], row[title.name] ?? null]),
      };
    case 'count':
      return {
        request: call('count_objects', { ...asked, where }),
        expected: matching.length,
        read: (data) => data['count'],
      };
    case 'group': {
      const stages = [
        { $match: where },
        { $group: { _id: `$${title.name}`, sum: { $sum: `$${number.name}` } } },
        { $limit: 50 },
      ];
      const sums = new Map<unknown, number>();
      for (const index of matching) {
        const key = shownValue(index, title);
        sums.set(key, (sums.get(key) ?? 0) + Number(shownValue(index, number)));
      }
      return {
        request: call('aggregate', { ...asked, pipeline: stages }),
        expected: sorted([...sums]),
        read: (data) => sorted(rowsIn(data, 'results').map((row) => [row['_id'] ?? null, row['sum']])),
      };
    }
    case 'groups':
    case 'distinct': {
      const counts = new Map<unknown, number>();
      for (const index of rows)
        counts.set(shownValue(index, title), (counts.get(shownValue(index, title)) ?? 0) + 1);
      const named = [...counts].map(([key, count]) => [key ?? 'null', count]);
      if (kind === 'groups')
        return {
          request: call('group_by', { class_name: className, field: title.name }),
          expected: sorted(named),
          read: (data) => sorted(rowsIn(data, 'groups').map(({ key, value }) => [key, value])),
        };
      return {
        request: call('distinct', { class_name: className, field: title.name }),
        expected: sorted([...counts.keys()]),
        read: (data) => sorted(data['values'] as unknown[]),
      };
    }
    case 'join':
    case 'include':
      return joined(world, sight, chosen, rows);
  }
}

/** Whether a readable column of a class is shown where another class includes it. */
const comesAlong = ({ joinFields, largeFields }: ClassRules, name: string): boolean =>
  joinFields?.length ? joinFields.includes(name) : !largeFields.includes(name);

/** Each row with the title of the one it points at, where that one exists for the agent. */
function joined(world: World, sight: AgentSight, chosen: Choices, rows: number[]): PermittedQuestion | null {
  const { className, kind, canonical } = chosen;
  const column = firstOf(className, 'pointer', chosen.pointer);
  const target = column.target as OwnClass;
  const operation = kind === 'join' ? 'find' : 'get';
  if (!OWN_CLASSES.includes(target) || sight.isWithheld(target)) return null;
  const title = firstOf(target, 'text');
  if (!sight.mayAsk(className, column.name) || !sight.mayAsk(target, title.name)) return null;
  if (!sight.permits(target, operation)) return null;
  if (kind === 'join' && !sight.areTogether(className, target)) return null;
  if (kind === 'include' && !comesAlong(world.classes[target], title.name)) return null;
  const reached = new Set(sight.rowsFor(target, operation, false));
  const expected = rows.map((index) => {
    const to = world.rows[className][index]?.values[column.name] ?? null;
    if (to === null || !reached.has(to)) return [rowId(className, index), []];
    const text = world.rows[target][to]?.values[title.name] ?? null;
    return [rowId(className, index), [rowId(target, to), text === null ? null : ordinary(title, text)]];
  });
  if (kind === 'join') {
    const { name } = column;
    const join = { from: target, localField: name, foreignField: 'objectId', as: 'joined' };
    const pipeline = [{ $sort: { objectId: 1 } }, { $lookup: join }, { $project: { joined: 1 } }];
    return {
      request: call('aggregate', { class_name: className, pipeline, apply_canonical_filter: canonical }),
      expected,
      read: (data) =>
        rowsIn(data, 'results').map((row) => [
          row['_id'] ?? row['objectId'],
          (row['joined'] as Row[]).flatMap((one) => [one['_id'] ?? one['objectId'], one[title.name] ?? null]),
        ]),
    };
  }
  return {
    request: call('query_class', { class_name: className, include: [column.name], order: 'objectId' }),
    expected,
    read: (data) =>
      rowsIn(data, 'results').map((row) => {
        const one = row[column.name] as Row | undefined;
        const included = one?.['objectId'] === undefined || one['__type'] === 'Pointer' ? null : one;
        return [row['objectId'], included ? [included['objectId'], included[title.name] ?? null] : []];
      }),
  };
}
