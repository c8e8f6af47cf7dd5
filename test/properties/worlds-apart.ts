import { stringify } from 'yaml';
import { type ClassConfig, type PolicyConfig } from '#policy';
import { marked, ordinary } from './cell-values.js';
import { AgentSight, FILTER_LIMIT, LEFT_OUT, LIMITED_BY } from './sight.js';
import {
  CALLER,
  CLASS_NAMES,
  type ClassConfigs,
  type ClassName,
  type Column,
  COLUMNS,
  columnNames,
  OWNER_COLUMN,
  ROLE,
  rowId,
  TENANT_COLUMN,
  TOKEN,
} from './vocabulary.js';
import type { AgentLimits, ClassRules, ProtectedLists, RowSpec, Rule, World } from './world.js';

/** Two seeds that differ in nothing the agent may see. */
export interface WorldsApart {
  /** Everything it may not see is marked. */
  readonly marked: unknown;
  /** Everything it may not see is ordinary, and looks like what it may see, or is not there. */
  readonly ordinary: unknown;
  /** The marks, and the names of what the agent may not know. */
  readonly traces: readonly string[];
}

type Json = Record<string, unknown>;
const HASH = (index: number, letter: string) =>
  `$2b$10$${letter.repeat(51)}${String(index).padStart(2, '0')}`;

const MADE = { createdAt: '2024-01-01T00:00:00.000Z', updatedAt: '2024-01-01T00:00:00.000Z' };

const allColumns = (className: ClassName): readonly Column[] => [
  ...COLUMNS[className],
  { name: TENANT_COLUMN[className], kind: 'text' },
  { name: 'createdAt', kind: 'date' },
];

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

function schema(className: ClassName, rules: ClassRules): object {
  const types = {
    text: 'String',
    number: 'Number',
    date: 'Date',
    place: 'GeoPoint',
    flag: 'Boolean',
    object: 'Object',
    texts: 'Array',
    pointers: 'Array',
    pointer: 'Pointer',
    relation: 'Relation',
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
  const traces = new Set<string>(['ZEKRETtoken', HASH(0, 'Z').slice(0, 40)]);

  const cell = (className: ClassName, column: Column, row: RowSpec, index: number, secret: boolean) => {
    const own = row.values[column.name] ?? null;
    const given = own === null ? undefined : ordinary(column, own);
    const seen = sight.of(className, row, index, column.name);
    if (seen === 'all' || sight.decides(className, column.name)) return given;
    if ((seen === 'presence' || seen === 'rest' || seen === 'equality') && own === null) return undefined;
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

  /** Another value for each value: equal ones stay equal, and what may be seen of an object stays. */
  const exchanged = (column: Column, own: number, seen: 'rest' | 'equality', secret: boolean): unknown => {
    const mark = secret && column.kind !== 'flag' ? marked(column, own) : null;
    const value = mark?.value ?? ordinary(column, secret ? own : own + 1);
    if (seen === 'equality') for (const trace of mark?.traces ?? []) traces.add(trace);
    if (seen === 'equality') return value;
    const { tone } = value as { tone: string };
    if (mark) traces.add(tone);
    return { ...(ordinary(column, own) as object), tone };
  };

  const rowsOf = (className: ClassName, secret: boolean) =>
    world.rows[className].flatMap((row, index) => {
      const gone = !secret && row.absent && className !== '_User' && !sight.exists(className, row, index);
      if (gone) return [];
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
    schemas: CLASS_NAMES.map((name) => schema(name, world.classes[name])),
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
      CLASS_NAMES.filter((name) => name !== '_User').map((name) => [name, rowsOf(name, secret)]),
    ),
  });
  return { marked: seed(true), ordinary: seed(false), traces: [...traces, ...unspeakable(world, sight)] };
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
      .flatMap((name) => [name, `INFO${name}`]);
  });
}

function classConfig(className: ClassName, rules: ClassRules): ClassConfig {
  const properties = allColumns(className).map(({ name, kind, target }) => [
    name,
    { description: `INFO${name}`, ...(kind === 'pointers' && target && { targetClass: target }) },
  ]);
  const { hidden, tenant } = rules;
  return {
    description: `INFO${className}`,
    visible: rules.visible,
    hidden: hidden === 'exceptMaster' ? { except: 'masterKey' } : hidden === 'always',
    largeFields: rules.largeFields,
    properties: Object.fromEntries(properties),
    ...(rules.fields && { fields: rules.fields }),
    masks: Object.fromEntries(
      Object.entries(rules.masks).map(([name, { form, openToAdmin, member }]) => [
        member === null ? name : `${name}.${member}`,
        openToAdmin ? { readonly: form, admin: 'none' } : form,
      ]),
    ),
    ...(rules.canonical &&
      className !== '_User' && { canonicalFilter: { [LIMITED_BY[className]]: { $lte: FILTER_LIMIT } } }),
    ...(tenant && {
      tenantScope: { field: TENANT_COLUMN[className], ...(tenant.bypass && { bypass: ['admin'] }) },
    }),
  };
}

const MASKING_KEY = 'a secret that no agent may ever learn';

function policyOf(world: World): PolicyConfig {
  const classes: ClassConfigs = Object.fromEntries(
    CLASS_NAMES.map((name) => [name, classConfig(name, world.classes[name])]),
  );
  return { ...world.switches, suppressMasterKeyWarning: true, maskingKey: MASKING_KEY, classes };
}

/** The row filters of an agent or sub-agent, as its options take them. */
export function filtersOf({ filtered, filteredByDefault }: AgentLimits): Record<string, Json> {
  const ids = CLASS_NAMES.map(LEFT_OUT);
  return {
    ...Object.fromEntries(filtered.map((name) => [name, { [LIMITED_BY[name]]: { $lte: FILTER_LIMIT } }])),
    ...(filteredByDefault && { default: { objectId: { $nin: ids } } }),
  };
}

export const AGENT_KEY = 'key-of-the-agent';

export function configOf(world: World): string {
  const { agent } = world;
  const { posture } = agent;
  const identity =
    posture === 'user'
      ? { user: CALLER }
      : posture === 'role'
        ? { role: ROLE }
        : posture === 'master'
          ? 'master'
          : { session: 'caller' };
  return stringify(
    {
      server: { port: 0 },
      // The same for both: what they ask is compared as well.
      audit: { digestKey: 'the digests of both worlds compare' },
      database: { uri: 'embedded', name: 'parley' },
      agents: {
        asked: {
          permissions: agent.permissions,
          tenantId: agent.tenantId,
          identity,
          clientMode: posture === 'client',
          rateLimit: 1_000_000_000,
          filters: filtersOf(agent),
          ...(agent.tools && { tools: agent.tools }),
          ...(agent.classes && { classes: agent.classes }),
        },
      },
      auth: [{ apiKey: AGENT_KEY, agent: 'asked' }],
      policy: policyOf(world),
    },
    { aliasDuplicateObjects: false },
  );
}
