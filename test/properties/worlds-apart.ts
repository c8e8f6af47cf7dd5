import { marked, MARKED_LATER, ordinary as ordinaryOf, poolOf } from './cell-values.js';
import { isHolding, withOthers } from './held-objects.js';
import { AgentSight } from './sight.js';
import {
  allColumns,
  CALLER,
  CLASS_NAMES,
  type ClassName,
  type Column,
  COLUMNS,
  columnNames,
  OWNER_COLUMN,
  ROLE,
  rowId,
  ROWS,
  TENANT_COLUMN,
  TOKEN,
} from './vocabulary.js';
import {
  type ClassRules,
  type OwnClass,
  type ProtectedLists,
  type RowSpec,
  type Rule,
  tenantsOf,
  type World,
} from './world.js';
import { KEPT } from './world-config.js';

/** Two seeds that differ in nothing the agent may see. */
export interface WorldsApart {
  /** Everything it may not see is marked. */
  readonly marked: unknown;
  /** Everything it may not see is ordinary, and looks like what it may see, or is not there. */
  readonly ordinary: unknown;
  /** The marks, and the names of what the agent may not know. */
  readonly traces: readonly string[];
}

const HASH = (index: number, letter: string) =>
  `$2b$10$${letter.repeat(51)}${String(index).padStart(2, '0')}`;

const CROWD = 220;

const MADE = { createdAt: '2024-01-01T00:00:00.000Z', updatedAt: '2024-01-01T00:00:00.000Z' };

const open = { '*': true };
function permission(rule: Rule, className: ClassName): object | undefined {
  switch (rule) {
    case 'unset':
      return undefined;
    case 'open':
      return open;
    case 'nobody':
      return {};
    case 'authenticated':
      return { requiresAuthentication: true };
    case 'role':
      return { [`role:${ROLE}`]: true };
    case 'owner':
      return { pointerFields: [className === '_User' ? '' : OWNER_COLUMN[className]] };
  }
}

function protectedFields(className: ClassName, lists: ProtectedLists): object {
  return {
    ...(lists.everyone && { '*': lists.everyone }),
    ...(lists.authenticated && { authenticated: lists.authenticated }),
    ...(lists.role && { [`role:${ROLE}`]: lists.role }),
    ...(lists.owner && className !== '_User' && { [`userField:${OWNER_COLUMN[className]}`]: lists.owner }),
  };
}

function schema(className: ClassName, rules: ClassRules, isWritten: boolean): object {
  const types = {
    text: 'String',
    number: 'Number',
    date: 'Date',
    place: 'GeoPoint',
    flag: 'Boolean',
    object: 'Object',
    texts: 'Array',
    pointers: 'Array',
    bag: 'Object',
    pile: 'Array',
    pointer: 'Pointer',
    relation: 'Relation',
    vector: 'Array',
    code: 'String',
  } as const;
  const fields = allColumns(className)
    .filter(({ name }) => name !== 'createdAt')
    .map(({ name, kind, target }) => [
      name,
      { type: types[kind], ...(target && kind !== 'pointers' && { targetClass: target }) },
    ]);
  const { find, count, get, hiddenFrom } = rules;
  const operations = Object.entries({ find, count, get }).flatMap(([operation, rule]) => {
    const given = permission(rule, className);
    return given ? [[operation, given]] : [];
  });
  const first = COLUMNS[className][0]?.name ?? '';
  return {
    className,
    fields: Object.fromEntries(fields),
    indexes: { [`by_${first}`]: { [first]: 1 } },
    classLevelPermissions: {
      ...Object.fromEntries(operations),
      ...(isWritten && { create: open, update: open, delete: open }),
      ...(hiddenFrom && { protectedFields: protectedFields(className, hiddenFrom) }),
    },
  };
}

const ACLS: Readonly<Record<RowSpec['acl'], object | undefined>> = {
  none: undefined,
  public: { '*': { read: true } },
  caller: { [CALLER]: { read: true, write: true } },
  role: { [`role:${ROLE}`]: { read: true } },
  other: { [rowId('_User', 1)]: { read: true } },
  nobody: {},
};

export function worldsApart(world: World): WorldsApart {
  const sight = new AgentSight(world);
  const tenants = tenantsOf(world);
  const ordinary = (column: Column, index: number) => ordinaryOf(column, index, tenants);
  const traces = new Set<string>(['ZEKRETtoken', MARKED_LATER, HASH(0, 'Z').slice(0, 40)]);

  /** What stands inside others and is withheld differs wherever it stands. */
  const cell = (className: ClassName, column: Column, row: RowSpec, index: number, secret: boolean) => {
    const value = plainCell(className, column, row, index, secret);
    if (!isHolding(column)) return value;
    const isReplaced = (name: ClassName) => sight.isWithheld(name) && !sight.isReachable(name);
    const held = withOthers(value, isReplaced, { column, row: index, secret });
    for (const trace of held.traces) traces.add(trace);
    return held.value;
  };

  const plainCell = (className: ClassName, column: Column, row: RowSpec, index: number, secret: boolean) => {
    if (column.kind === 'code') return codeCell(className, column, row, index, secret);
    const own = row.values[column.name] ?? null;
    const given = own === null ? undefined : ordinary(column, own);
    const seen = sight.of(className, row, index, column.name);
    if (seen === 'all' || sight.decides(className, column.name)) return given;
    if (seen !== 'nothing' && own === null) return undefined;
    if (seen === 'ending') return withEnding(column, index, String(given), secret);
    if (seen === 'rest' || seen === 'equality') return exchanged(column, own as number, seen, secret);
    if (secret) {
      const mark = marked(column, index);
      for (const trace of mark.traces) traces.add(trace);
      return mark.value;
    }
    const other = row.others[column.name] ?? null;
    if (other === null) return seen === 'presence' ? oneOf(ordinary(column, 0)) : undefined;
    return seen === 'presence' ? oneOf(ordinary(column, other)) : ordinary(column, other);
  };

  /** No two rows of a world hold the same, and what one holds that the agent may not see differs between the worlds. */
  const codeCell = (className: ClassName, column: Column, row: RowSpec, index: number, secret: boolean) => {
    if (sight.of(className, row, index, column.name) === 'all') return ordinary(column, index);
    if (!secret) return ordinary(column, ROWS + index);
    const mark = marked(column, index);
    for (const trace of mark.traces) traces.add(trace);
    return mark.value;
  };

  /** Another value with the same end. */
  const withEnding = (column: Column, index: number, given: string, secret: boolean): string => {
    const mark = String(marked(column, index).value);
    if (secret) traces.add(mark);
    return (secret ? mark : 'ordinarily ') + given.slice(-KEPT);
  };

  /** Another value for each value: equal ones stay equal, and what may be seen of an object stays. */
  const exchanged = (column: Column, own: number, seen: 'rest' | 'equality', secret: boolean): unknown => {
    const mark = secret && column.kind !== 'flag' ? marked(column, own % poolOf(column)) : null;
    const value = mark?.value ?? ordinary(column, secret ? own : own + 1);
    if (seen === 'equality') for (const trace of mark?.traces ?? []) traces.add(trace);
    if (seen === 'equality') return value;
    const { tone } = value as { tone: string };
    if (mark) traces.add(tone);
    return { ...(ordinary(column, own) as object), tone };
  };

  const rowsOf = (className: ClassName, secret: boolean) =>
    world.rows[className].flatMap((row, index) => {
      const isKnown = (name: OwnClass) =>
        sight.sees(name, row, index) || (world.proposed && sight.mayWrite(name, row, index));
      if (!secret && row.absent && className !== '_User' && !isKnown(className)) return [];
      const values = allColumns(className).map(
        (column) => [column.name, cell(className, column, row, index, secret)] as const,
      );
      const acl = ACLS[row.acl];
      return [
        {
          objectId: rowId(className, index),
          ...Object.fromEntries(values.filter(([, value]) => value !== undefined)),
          updatedAt: '2024-06-01T00:00:00.000Z',
          createdAt: isoOf(values.find(([name]) => name === 'createdAt')?.[1]),
          ...(acl && { ACL: acl }),
        },
      ];
    });

  const seed = (secret: boolean) => ({
    schemas: CLASS_NAMES.map((name) => schema(name, world.classes[name], world.proposed)),
    users: rowsOf('_User', secret).map((row, index) => ({
      ...row,
      username: `user${index}`,
      passwordHash: HASH(index, secret ? 'Z' : 'y'),
    })),
    roles: [{ objectId: 'idOfRole', name: ROLE, users: [CALLER], ACL: {}, ...MADE }],
    sessions: [
      {
        objectId: 'sess0',
        sessionToken: TOKEN,
        user: CALLER,
        expiresAt: '2099-01-01T00:00:00.000Z',
        ...MADE,
      },
      {
        objectId: 'sess1',
        sessionToken: secret ? 'r:ZEKRETtoken' : 'r:other',
        user: rowId('_User', 1),
        expiresAt: '2099-01-01T00:00:00.000Z',
        ...MADE,
      },
    ],
    objects: Object.fromEntries(
      CLASS_NAMES.filter((name) => name !== '_User').map((name) => [
        name,
        [...rowsOf(name, secret), ...(secret && name === 'Orchard' ? crowdOf(world) : [])],
      ]),
    ),
  });
  return { marked: seed(true), ordinary: seed(false), traces: [...traces, ...unspeakable(world, sight)] };
}

/** More rows of another tenant than a search by vector looks at, all of them nearest, in one of the worlds. */
function crowdOf(world: World): object[] {
  const { agent, crowd } = world;
  const [other] = tenantsOf(world).filter((tenant) => tenant !== agent.tenantId);
  return Array.from({ length: crowd ? CROWD : 0 }, (_, index) => ({
    objectId: `crowd${index}`,
    orcTitle: 'plain 1 plain 2',
    orcVector: [1, 0.01, 0],
    orcCode: `code ${100 + index}`,
    [TENANT_COLUMN.Orchard]: other,
    ...MADE,
  }));
}

/** Every way leads past the other world's array being longer: how many there are is part of being there. */
function oneOf(value: unknown): unknown {
  return Array.isArray(value) ? value.slice(0, 1) : value;
}

function isoOf(value: unknown): string {
  return (value as { iso?: string } | undefined)?.iso ?? '2024-01-01T00:00:00.000Z';
}

/** Names that nothing may say to this agent before it says them itself. */
function unspeakable(world: World, sight: AgentSight): string[] {
  return CLASS_NAMES.flatMap((className) => {
    const texts = [`INFO${className}`];
    if (sight.isWithheld(className) && className !== '_User') {
      if (sight.isReachable(className)) return [className];
      const columns = columnNames(className);
      return [className, ...texts, ...columns, ...columns.map((name) => `INFO${name}`)];
    }
    return columnNames(className)
      .filter((name) => !sight.mayName(className, name))
      .flatMap((name) => (sight.isToldByPolicy(className, name) ? [`INFO${name}`] : [name, `INFO${name}`]));
  });
}
