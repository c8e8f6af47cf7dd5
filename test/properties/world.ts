import fc from 'fast-check';
import { POOL } from './cell-values.js';
import {
  type ClassName,
  CLASS_NAMES,
  COLUMNS,
  columnNames,
  OWN_CLASSES,
  ROWS,
  TENANT_COLUMN,
  TENANTS,
} from './vocabulary.js';

export type OwnClass = (typeof OWN_CLASSES)[number];
export type Rule = 'unset' | 'open' | 'nobody' | 'authenticated' | 'role' | 'owner';
type Acl = 'none' | 'public' | 'caller' | 'role' | 'other' | 'nobody';

export interface ClassRules {
  readonly hidden: 'no' | 'always' | 'exceptMaster';
  readonly visible: boolean;
  /** Null: no allowlist. */
  readonly fields: readonly string[] | null;
  /** What comes along where another class includes it; null or none: what is readable. */
  readonly joinFields: readonly string[] | null;
  readonly largeFields: readonly string[];
  /** By column. */
  readonly masks: Readonly<Record<string, MaskSpec>>;
  readonly canonical: boolean;
  readonly tenant: { readonly bypass: boolean } | null;
  /** By vector; `tenant`: the index can filter by the column of the tenant. Of the one class that has a vector. */
  readonly searchable: { readonly tenant: boolean } | null;
  readonly find: Rule;
  readonly count: Rule;
  readonly get: Rule;
  /** Null: none are set at all. */
  readonly hiddenFrom: ProtectedLists | null;
}

export interface MaskSpec {
  /** `ending`: a mask that keeps the last few characters; of texts only. */
  readonly form: 'drop' | 'deny' | 'mask' | 'hash' | 'ending';
  /** Agents of tier admin read the value itself. */
  readonly openToAdmin: boolean;
  /** Of an object only one member, by name; null: the whole column. */
  readonly member: string | null;
}

export interface ProtectedLists {
  readonly everyone: readonly string[] | null;
  readonly authenticated: readonly string[] | null;
  readonly role: readonly string[] | null;
  readonly owner: readonly string[] | null;
}

/** A row's values by number in their columns' pools; what the second one is for, see `worldsApart`. */
export interface RowSpec {
  readonly acl: Acl;
  readonly values: Readonly<Record<string, number | null>>;
  readonly others: Readonly<Record<string, number | null>>;
  /** Where no agent could see it, the other world lacks the row. */
  readonly absent: boolean;
}

export interface AgentLimits {
  readonly tools: object | null;
  readonly classes: { readonly only?: readonly string[]; readonly except?: readonly string[] } | null;
  /** Classes whose rows are filtered. */
  readonly filtered: readonly OwnClass[];
  /** Also by the entry for every class. */
  readonly filteredByDefault: boolean;
}

export interface AgentSpec extends AgentLimits {
  readonly posture: 'master' | 'session' | 'client' | 'user' | 'role';
  readonly permissions: 'readonly' | 'write' | 'admin';
  readonly tenantId: string | null;
  /** May count facets. */
  readonly masterAtlas: boolean;
  /** Asked through a sub-agent of that agent. */
  readonly child: AgentLimits | null;
}

export interface World {
  readonly classes: Readonly<Record<ClassName, ClassRules>>;
  readonly rows: Readonly<Record<ClassName, readonly RowSpec[]>>;
  readonly switches: Readonly<Record<string, boolean>>;
  readonly agent: AgentSpec;
  /** Of one class there are many rows of another tenant in one of the worlds. */
  readonly crowd: boolean;
  /** Who asks has written before as a person of another tenant, in one of the worlds. */
  readonly earlier: boolean;
  /** Tenants are a claim of callers, and no agent has a `tenantId`. */
  readonly claimed: boolean;
  /** Its writes are proposed, as those of another agent are that it decides about and takes back. */
  readonly proposed: boolean;
  /** Absent: Parse stores the rows. */
  readonly storage?: 'plain';
  /** Absent: all of them in one database. */
  readonly spread?: Readonly<Record<ClassName, Place>>;
}

/** Where the rows of a class are: in the first database, in the second one, or in that of the tenant of each row. */
export type Place = 'first' | 'second' | 'apart';

/** The tenants of a world. Collections compare their names without regard to case, and names of databases have one case. */
export const tenantsOf = ({ spread }: Pick<World, 'spread'>): readonly [string, string] =>
  spread ? ['acme', 'globex'] : TENANTS;

/** Often nothing: where everything is forbidden nothing is found. */
const seldom = <T>(some: fc.Arbitrary<T>, weight = 1): fc.Arbitrary<T | null> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight, arbitrary: some });

const anyOf = (names: readonly string[]) => fc.subarray([...names]);
const few = (names: readonly string[]) => fc.subarray([...names], { maxLength: Math.min(4, names.length) });
const allBut = (names: readonly string[]) =>
  few(names).map((taken) => names.filter((name) => !taken.includes(name)));

function protectedLists(className: ClassName): fc.Arbitrary<ProtectedLists | null> {
  const names = [...columnNames(className), 'createdAt'];
  const list = few(names);
  const rare = seldom(list);
  const lists = fc.record({
    everyone: fc.oneof({ weight: 4, arbitrary: list }, { weight: 1, arbitrary: fc.constant(null) }),
    authenticated: rare,
    role: rare,
    owner: className === '_User' ? fc.constant(null) : seldom(list, 2),
  });
  return fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 2, arbitrary: lists });
}

const rule = (owned: boolean): fc.Arbitrary<Rule> =>
  fc.constantFrom<Rule>(
    'open',
    'open',
    'open',
    'open',
    'authenticated',
    'role',
    ...(owned ? (['unset', 'nobody', 'owner'] as const) : []),
  );

const FORMS = ['drop', 'deny', 'mask', 'hash'] as const;

/** Of one class in three, about every other column. */
function masks(className: ClassName): fc.Arbitrary<Readonly<Record<string, MaskSpec>>> {
  const spec = (kind: string): fc.Arbitrary<MaskSpec> =>
    fc.record({
      form: fc.constantFrom<MaskSpec['form']>(...FORMS, ...(kind === 'text' ? (['ending'] as const) : [])),
      openToAdmin: fc.boolean(),
      member: kind === 'object' ? fc.constantFrom('tone', null) : fc.constant(null),
    });
  const perColumn = COLUMNS[className].map(({ name, kind }) =>
    fc.tuple(fc.constant(name), fc.option(spec(kind), { nil: null, freq: 2 })),
  );
  const some = fc
    .tuple(...perColumn)
    .map((chosen) =>
      Object.fromEntries(chosen.filter((entry): entry is [string, MaskSpec] => entry[1] !== null)),
    );
  return fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: some });
}

function classRules(className: ClassName): fc.Arbitrary<ClassRules> {
  const own = className !== '_User';
  const names = columnNames(className);
  const rules = fc.record({
    hidden: fc.constantFrom('no', 'no', 'no', 'no', 'no', 'no', 'no', 'no', 'always', 'exceptMaster'),
    visible: fc.boolean(),
    fields: seldom(allBut(names), 1),
    joinFields: seldom(few(names)),
    masks: masks(className),
    largeFields: fc.oneof(fc.constant([]), anyOf(names)),
    canonical: own ? fc.boolean() : fc.constant(false),
    searchable:
      className === 'Orchard'
        ? fc.option(fc.record({ tenant: fc.boolean() }), { nil: null, freq: 4 })
        : fc.constant(null),
    tenant: own ? seldom(fc.record({ bypass: fc.boolean() }), 1) : fc.constant(null),
    find: rule(own),
    count: rule(own),
    get: rule(own),
    hiddenFrom: protectedLists(className),
  }) as fc.Arbitrary<ClassRules>;
  // Anything else stops the start: what comes along is among what may be read at all, and so is the text that a class with masks
  // is searchable by.
  return rules.map(({ joinFields, searchable, ...rest }) => {
    const isListed = (name: string) => rest.fields?.includes(name) ?? true;
    return {
      ...rest,
      joinFields: joinFields?.filter(isListed) ?? null,
      searchable: isListed('orcTitle') || Object.keys(rest.masks).length === 0 ? searchable : null,
    };
  });
}

function rowsOf(className: ClassName): fc.Arbitrary<RowSpec[]> {
  const names = [...COLUMNS[className].map(({ name }) => name), TENANT_COLUMN[className], 'createdAt'];
  const values = () =>
    fc
      .array(fc.option(fc.nat(POOL - 1), { nil: null, freq: 6 }), {
        minLength: names.length,
        maxLength: names.length,
      })
      .map((chosen) => Object.fromEntries(names.map((name, index) => [name, chosen[index] ?? null])));
  const row = fc.record({
    acl: fc.constantFrom<Acl>('none', 'none', 'public', 'caller', 'role', 'other', 'nobody'),
    values: values(),
    others: values(),
    absent: fc.boolean(),
  });
  return fc.array(row, { minLength: ROWS, maxLength: ROWS });
}

const LISTED_TOOLS = ['aggregate', 'query_class', 'get_all_schemas', 'get_schema', 'distinct', 'export_data'];

function limits(loose: boolean): fc.Arbitrary<AgentLimits> {
  const weight = loose ? 1 : 2;
  return fc.record({
    tools: seldom(
      fc.oneof(
        anyOf(LISTED_TOOLS).map((except) => ({ except })),
        fc.constant({ profile: 'lean' }),
        anyOf([...LISTED_TOOLS, 'count_objects', 'get_object']).map((only) => ({ only })),
      ),
      weight,
    ),
    classes: seldom(
      fc.oneof(
        anyOf(CLASS_NAMES).map((except) => ({ except })),
        anyOf(OWN_CLASSES).map((more) => ({ only: ['Orchard', ...more] })),
      ),
      weight,
    ),
    filtered: fc.oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      { weight, arbitrary: fc.subarray([...OWN_CLASSES]) },
    ),
    filteredByDefault: fc.integer({ min: 0, max: 9 }).map((roll) => roll === 0),
  }) as fc.Arbitrary<AgentLimits>;
}

const agent: fc.Arbitrary<AgentSpec> = fc
  .tuple(
    fc.record({
      posture: fc.constantFrom<AgentSpec['posture']>(
        'master',
        'session',
        'session',
        'client',
        'user',
        'role',
      ),
      permissions: fc.constantFrom<AgentSpec['permissions']>('readonly', 'write', 'admin'),
      tenantId: fc.constantFrom<string | null>(...TENANTS, 'acme', 'acme', null),
      masterAtlas: fc.boolean(),
      child: seldom(limits(false), 1),
    }),
    limits(true),
  )
  .map(([own, rest]) => ({ ...own, ...rest }));

const perClass = <T>(make: (className: ClassName) => fc.Arbitrary<T>) =>
  fc.record(
    Object.fromEntries(CLASS_NAMES.map((name) => [name, make(name)])) as Record<ClassName, fc.Arbitrary<T>>,
  );

/** Small worlds: rules of the operator, rights in the database, rows, and one agent among them. */
export const worlds: fc.Arbitrary<World> = fc.record({
  classes: perClass(classRules),
  rows: perClass(rowsOf),
  switches: fc.record({
    concealHidden: fc.boolean(),
    refuseUnlisted: fc.boolean(),
    refuseCollscan: fc.integer({ min: 0, max: 5 }).map((roll) => roll === 0),
    includeSourceProvenance: fc.integer({ min: 0, max: 5 }).map((roll) => roll === 0),
  }),
  agent,
  crowd: fc.constant(false),
  earlier: fc.constant(false),
  claimed: fc.constant(false),
  proposed: fc.constant(false),
});

const HASHED: MaskSpec = { form: 'hash', openToAdmin: false, member: null };

/** One person who writes, in two tenants, and rows of the other tenant that are nearest to whatever is looked for. */
export const worldsOfTwoTenants: fc.Arbitrary<World> = fc
  .tuple(worlds, fc.boolean())
  .map(([world, claimed]) => {
    const ofTenant = (rules: ClassRules, filters: ClassRules['searchable']): ClassRules => ({
      ...rules,
      hidden: 'no',
      fields: null,
      canonical: false,
      masks: {},
      tenant: { bypass: false },
      searchable: filters,
    });
    const { permissions, tenantId } = world.agent;
    return {
      ...world,
      crowd: true,
      earlier: true,
      claimed,
      classes: {
        ...world.classes,
        Orchard: ofTenant(world.classes.Orchard, { tenant: true }),
        // Both tenants hold both of its values.
        Ledger: { ...ofTenant(world.classes.Ledger, null), masks: { lgr_flag: HASHED } },
      },
      agent: {
        ...world.agent,
        posture: 'master',
        permissions: permissions === 'readonly' ? 'write' : permissions,
        tenantId: tenantId ?? 'acme',
        child: null,
        tools: null,
        classes: null,
        filtered: [],
      },
    };
  });

/** The same over plain collections, where nobody has the rights of a Parse user or role and no column is protected from these. */
export const plainWorlds: fc.Arbitrary<World> = worlds.map((world) => ({
  ...world,
  storage: 'plain',
  classes: Object.fromEntries(
    Object.entries(world.classes).map(([name, rules]) => [name, { ...rules, hiddenFrom: null }]),
  ) as World['classes'],
  agent: { ...world.agent, posture: 'master' },
}));

/** The same with classes in a second database and in databases of tenants. Users are those of the first one. */
const spreadOver = (made: fc.Arbitrary<World>, place: fc.Arbitrary<Place>): fc.Arbitrary<World> =>
  fc
    .tuple(made, fc.record({ Orchard: place, Farmer: place, Crate: place, Ledger: place }))
    .map(([world, own]) => {
      const spread = { ...own, _User: 'first' as const };
      const [, other] = tenantsOf({ spread });
      const { tenantId } = world.agent;
      return {
        ...world,
        spread,
        claimed: false,
        agent: { ...world.agent, tenantId: tenantId === TENANTS[1] ? other : tenantId },
      };
    });

export const spreadWorlds: fc.Arbitrary<World> = spreadOver(
  fc.oneof(worlds, plainWorlds),
  fc.constantFrom('first', 'second', 'apart', 'apart'),
);

/** One person who writes in two tenants, each with a database of its own, which alone keep some of the classes apart. */
export const worldsOfTwoDatabases: fc.Arbitrary<World> = fc
  .tuple(spreadOver(worldsOfTwoTenants, fc.constant('apart')), fc.boolean(), fc.boolean())
  .map(([world, plain, scoped]) => ({
    ...world,
    ...(plain && { storage: 'plain' as const }),
    classes: Object.fromEntries(
      Object.entries(world.classes).map(([name, rules]) => [
        name,
        {
          ...rules,
          ...(!scoped && name !== '_User' && { tenant: null }),
          ...(plain && { hiddenFrom: null }),
        },
      ]),
    ) as World['classes'],
  }));

/** One whose writes are proposed, over either form of storage. */
export const worldsOfSets: fc.Arbitrary<World> = fc
  .oneof({ weight: 2, arbitrary: worlds }, { weight: 1, arbitrary: plainWorlds })
  .map((world) => ({
    ...world,
    proposed: true,
    agent: {
      ...world.agent,
      permissions: world.agent.permissions === 'readonly' ? 'write' : world.agent.permissions,
      child: null,
      tools: null,
    },
  }));
