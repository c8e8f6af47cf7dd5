import type { Tier } from '#core';
import {
  type ClassConfig,
  type IdKind,
  type MemberConfig,
  READ_HOOKS,
  type ReadHooks,
  type TenantScopeConfig,
} from '#policy';
import {
  Allow,
  ArrayMinSize,
  Equals,
  IsArray,
  IsBoolean,
  IsIn,
  IsInt,
  IsNumber,
  IsObject,
  IsPositive,
  IsString,
  Matches,
  Max,
  Min,
  MinLength,
} from 'class-validator';
import { Nullable, type SchemaNode } from '#schema';
import { AnyOf, IsText, IsTexts, MapOf, Nested, Option, readOptions } from '../schema/option.js';
import { MASK, MASKED_PATH } from './masks.js';

/** Permission levels, as options name them. */
export const TIERS: readonly Tier[] = ['readonly', 'write', 'admin'];

/** Limits of data use, of an agent's principals or of a tenant. */
export class BudgetConfig {
  @Option('calls that passed the gates before the budget; a task counts as one call')
  @IsInt()
  @Min(1)
  readonly calls?: number;

  @Option('rows that the database returned, before any was withheld, and rows written')
  @IsInt()
  @Min(1)
  readonly rows?: number;

  @Option('results')
  @IsInt()
  @Min(1)
  readonly bytes?: number;

  @Option('milliseconds of operations in the database, including the wait for a connection')
  @IsInt()
  @Min(1)
  readonly databaseTime?: number;

  @Option(
    'seconds; default 3600. The window slides in steps of a twentieth, so a use counts for up to one step longer',
    {
      default: 3600,
    },
  )
  @IsNumber()
  @IsPositive()
  readonly window?: number;
}

class HiddenFromMasterKeyToo {
  @Option('an agent with the master key may name the class directly', { required: true })
  @Equals('masterKey')
  readonly except!: 'masterKey';
}

class TenantScope {
  @Option('holds the tenant', { required: true })
  @IsText()
  readonly field!: string;

  // Code may give functions here and below, which are checked where the class is compiled.
  @Option(
    "where the tenant comes from: `{ claim: NAME }`, or in code a function of the agent; default: the agent's `tenantId`",
  )
  @Allow()
  readonly from?: TenantScopeConfig['from'];

  @Option('tiers that are not bound to a tenant, or in code a function of the agent; default: none')
  @AnyOf({ type: 'array', items: { enum: TIERS } }, { not: { type: 'array' } })
  readonly bypass?: TenantScopeConfig['bypass'];
}

export class SearchableSection {
  @Option('the column with the vector. Searches compare it; it is returned only if `fields` lists it', {
    required: true,
  })
  @IsText()
  readonly field!: string;

  @Option('the filter fields of the vector index. Searches may filter on those that the agent reads')
  @IsTexts()
  readonly filterFields?: readonly string[];

  @Option(
    'the fields whose text the vector represents; must be among `fields`. `semantic_search` returns the first one',
  )
  @IsTexts()
  @ArrayMinSize(1)
  readonly textFields?: readonly string[];

  @Option('name of the vector index', { default: 'vector_index' })
  @IsText()
  readonly index?: string;
}

/** The members of a nested document are read by `#policy`: a member may have members. */
const MEMBERS: SchemaNode = { type: ['string', 'object'] };

class Timestamps {
  @Option('the stored name of `createdAt`', { default: 'createdAt' })
  @IsText()
  readonly createdAt?: string;

  @Option('the stored name of `updatedAt`', { default: 'updatedAt' })
  @IsText()
  readonly updatedAt?: string;
}

class Property {
  @Option(
    'the type that a write gives to a column that does not exist yet; of a plain class, the type of the column',
  )
  @IsString()
  readonly type?: string;

  @Option('shown to agents, as data')
  @IsString()
  @Nullable()
  readonly description?: string | null;

  @Option(
    'the class of the pointers in an array, so that they can be included; of a plain class, the class whose `_id` the column, or each entry of the array, holds',
  )
  @IsString()
  readonly targetClass?: string;

  @Option('the stored column when it has another name')
  @IsString()
  @Matches(/^[^$.][^.]{0,127}$/, {
    message: 'the name of a column: no dot, no $ at the start, 128 characters at most',
  })
  readonly field?: string;

  @Option('value → meaning')
  @MapOf({ type: ['string', 'null'] })
  readonly enum?: Readonly<Record<string, string | null>>;

  @Option(
    'plain classes only: the members of an `Object`, or of the entries of an `Array`, each a type or a property',
  )
  @MapOf(MEMBERS)
  readonly of?: Readonly<Record<string, MemberConfig>>;
}

/** One entry of `policy.classes`: the rules of a class. What the class has in the database is checked by `#policy`. */
export class ClassEntry {
  @Option(
    'which of [databases](configuration.md#databases) holds the rows; default: the first one. A class belongs to one database',
  )
  @IsText()
  readonly database?: string;

  @Option(
    "`parse` or `plain`: a collection that Parse did not write, see [plain MongoDB collections](plain-mongodb.md). Default: the database's `storage`. A plain class has no ACLs and no class-level permissions: the policy alone protects it",
  )
  @IsIn(['parse', 'plain'])
  readonly storage?: 'parse' | 'plain';

  @Option('plain classes only: the collection or view; default: the name of the class')
  @IsText()
  readonly collection?: string;

  @Option(
    'plain classes only: the type of `_id`, `objectId`, `string`, `number` or `uuid`; default: what the documents hold',
  )
  @IsIn(['objectId', 'string', 'number', 'uuid'])
  readonly id?: IdKind;

  @Option(
    'plain classes only: the stored names of `createdAt` and `updatedAt`, which Parley writes; `null`: the class has none',
    { default: { createdAt: 'createdAt', updatedAt: 'updatedAt' } },
  )
  @Nested(Timestamps)
  @Nullable()
  readonly timestamps?: Timestamps | null;

  @Option('shown to agents, as data, at most 200 characters')
  @IsString()
  @Nullable()
  readonly description?: string | null;

  @Option('shown to agents, as data, at most 200 characters')
  @IsString()
  @Nullable()
  readonly usage?: string | null;

  @Option(
    'not an access rule: if any class is marked visible, relations and suggestions name only visible classes',
    { default: false },
  )
  @IsBoolean()
  readonly visible?: boolean;

  @Option(
    '`true`: no tool reaches the class, on any path, and no listing names it. `{ except: masterKey }`: an agent with the master key may name it directly; joins, includes and listings still may not. `_Product`, `_Session`, `_JobStatus`, `_JobSchedule` are hidden unless you say `hidden: false`',
    { default: false },
  )
  @AnyOf({ type: 'boolean' }, HiddenFromMasterKeyToo)
  readonly hidden?: boolean | HiddenFromMasterKeyToo;

  @Option(
    'the readable fields. Other fields cannot be returned, filtered, sorted, grouped, joined or computed with. `objectId`, `createdAt` and `updatedAt` are always readable',
  )
  @IsTexts()
  readonly fields?: readonly string[];

  @Option('the fields that an included pointer to the class returns; must be among `fields`')
  @IsTexts()
  readonly joinFields?: readonly string[];

  @Option('marked `large_field` in schemas and left out of included rows')
  @IsTexts()
  readonly largeFields?: readonly string[];

  @Option(
    'per field and tier, the replacement of the value: `drop`, `deny`, `mask`, `hash` ([masking](masking.md))',
  )
  @MapOf(MASK, MASKED_PATH)
  readonly masks?: ClassConfig['masks'];

  @Option(
    'the default view (not a security boundary): applied to every read except of rows named by id; agents may switch it off for [some tools](tools.md)',
  )
  @IsObject()
  @Nullable()
  readonly canonicalFilter?: Readonly<Record<string, unknown>> | null;

  @Option(
    'a constraint that is added to every read of every agent and that none can switch off; it may compare with [values of the agent](#values-of-the-agent)',
  )
  @IsObject()
  @Nullable()
  readonly filters?: Readonly<Record<string, unknown>> | null;

  @Option(
    "`field`, a field of the row itself and no path, contains the tenant; every read, join and include carries the agent's `tenantId`. Agents without a tenant are refused. An id that names no row of the agent's tenant is refused with the same text whether another tenant has that row or the row does not exist (`cause` of the audit record contains the difference). `bypass` lists tiers; see [tenants](#tenants)",
  )
  @Nested(TenantScope)
  @Nullable()
  readonly tenantScope?: TenantScope | null;

  @Option('exempt from `refuseCollscan`', { default: false })
  @IsBoolean()
  readonly allowCollscan?: boolean;

  @Option(
    '`none`: no `beforeFind` or `afterFind` of Cloud Code decides what a user reads of the class, so sessions may read it past Parse Server; `possible`: one may. Default: [`parse.readHooks`](routes.md#read-hooks)',
  )
  @IsIn(READ_HOOKS)
  readonly readHooks?: ReadHooks;

  @Option('may be searched by vector similarity: see [searchable classes](#searchable)')
  @Nested(SearchableSection)
  @Nullable()
  readonly searchable?: SearchableSection | null;

  @Option('name of the Atlas Search index for text search', { default: 'default' })
  @IsText()
  readonly searchIndex?: string;

  @Option(
    'per field: `description`, `type` (the type that a write gives to a column that does not exist yet), `enum` (value → meaning), `field` (the stored column when it has another name), `targetClass` (the class of the pointers in an array, so that they can be included). Of a plain class: the columns themselves, see [plain MongoDB collections](plain-mongodb.md)',
  )
  @MapOf(Property)
  readonly properties?: Readonly<Record<string, Property>>;
}

const belongs = (place: string, names: Iterable<string>): Record<string, string> =>
  Object.fromEntries([...names].map((name) => [name, `it is an option of ${place}`]));

/** Those that are most often written here; `agents.ts` needs this module. */
const OPTIONS_OF_AGENTS = [
  'permissions',
  'identity',
  'tools',
  'methods',
  'tenantId',
  'allowMutations',
  'writes',
  'clientMode',
  'rateLimit',
  'budget',
];

/** The section `policy` (docs/reference/policy-options.md). Defaults are those of `#policy`, which compiles it. */
export class PolicySection {
  static readonly elsewhere = {
    ...belongs('agents.NAME', OPTIONS_OF_AGENTS),
    ...belongs('policy.classes.NAME', readOptions(ClassEntry).keys()),
    agents: 'write agents beside policy',
    auth: 'write auth beside policy',
  };

  @Option(
    '`refuse`: a class without an entry in `classes` does not exist for any agent. `allow`: agents read all fields of every class of a Parse database that nothing hides; not possible where `database.storage` is `plain`',
    { default: 'refuse' },
  )
  @IsIn(['allow', 'refuse'])
  readonly unlistedClasses?: 'allow' | 'refuse';

  @Option('tiers whose calls need the approval of a person; if nobody can be asked, the call is refused', {
    default: [],
  })
  @IsArray()
  @IsIn([...TIERS], { each: true })
  readonly requireApprovalFor?: readonly string[];

  @Option(
    'refuses queries, counts, exports, pipelines and groupings that would read a whole collection, those without a constraint too, also of a class that they join or ask in a subquery; not samples, rows by id, and all rows in the order of an index',
    { default: false },
  )
  @IsBoolean()
  readonly refuseCollscan?: boolean;

  @Option('explanations and refused scans contain the whole plan, including predicates of the operator', {
    default: false,
  })
  @IsBoolean()
  readonly exposeExplain?: boolean;

  @Option('a hidden class is refused exactly like a class that does not exist', { default: false })
  @IsBoolean()
  readonly concealHidden?: boolean;

  @Option('`get_schema` also returns the argument keys of declared methods (`permitted_keys`)', {
    default: false,
  })
  @IsBoolean()
  readonly agentDebug?: boolean;

  @Option('rows contain `_source`', { default: false })
  @IsBoolean()
  readonly includeSourceProvenance?: boolean;

  @Option(
    "CSV cells that a spreadsheet would run as a formula (`= + - @`, tab, return) get the prefix `'`; numbers stay numbers",
    { default: false },
  )
  @IsBoolean()
  readonly neutralizeFormulas?: boolean;

  @Option("unknown names in an agent's `tools` stop the start; otherwise each is a warning", {
    default: false,
  })
  @IsBoolean()
  readonly strictToolFilter?: boolean;

  @Option("unknown names in an agent's `classes.only` stop the start; otherwise each is a warning", {
    default: false,
  })
  @IsBoolean()
  readonly strictClassFilter?: boolean;

  @Option('the start logs no warning about agents with the master key', { default: false })
  @IsBoolean()
  readonly suppressMasterKeyWarning?: boolean;

  @Option(
    'agents with `identity: { role }` read rows whose ACL names the role and rows without an ACL, but not rows whose ACL names everyone (`*`)',
    { default: false },
  )
  @IsBoolean()
  readonly strictRole?: boolean;

  @Option('a call is refused when the schema text contains reserved markers, instead of neutralising them', {
    default: false,
  })
  @IsBoolean()
  readonly promptMarkerStrict?: boolean;

  @Option(
    'phrases, or `/patterns/i`, that are searched for in results; a match is logged as a warning; `canaryAction: refuse` withholds the result',
    { default: [] },
  )
  @IsTexts()
  readonly promptInjectionCanaries?: readonly string[];

  @Option('what happens to a result that contains one of `promptInjectionCanaries`: `notify` or `refuse`')
  @IsIn(['notify', 'refuse', null])
  readonly canaryAction?: 'notify' | 'refuse' | null;

  @Option('price of a million input tokens of the model that reads results; adds `est_cost_usd` to records', {
    default: null,
  })
  @IsNumber()
  @Min(0)
  @Nullable()
  readonly tokenCostPerMillionInput?: number | null;

  @Option('price of a million tokens at the embeddings endpoint; adds `embed_cost_usd` to records', {
    default: null,
  })
  @IsNumber()
  @Min(0)
  @Nullable()
  readonly embedCostPerMillionTokens?: number | null;

  @Option('arguments that a built-in tool does not declare are refused, or ignored (`ignore`)', {
    default: 'refuse',
  })
  @IsIn(['refuse', 'ignore'])
  readonly unknownArguments?: 'refuse' | 'ignore';

  @Option('`tools/list` also contains built-in tools that cannot work for the agent on this database', {
    default: false,
  })
  @IsBoolean()
  readonly listAllTools?: boolean;

  @Option(
    'the text of a result is JSON with line breaks and indentation, instead of [compact JSON](tools.md#text-of-results)',
    {
      default: false,
    },
  )
  @IsBoolean()
  readonly prettyText?: boolean;

  @Option('levels of [sub-agents](agents.md) below an agent', { default: 4 })
  @IsInt()
  @Min(0)
  readonly defaultRecursionDepth?: number;

  @Option('number of calls in the operation log', { default: 1000 })
  @IsInt()
  @Min(1)
  @Max(1_000_000)
  readonly maxLogSize?: number;

  @Option('the data that each tenant may use, over all agents: [budgets](configuration.md#budgets)')
  @Nested(BudgetConfig)
  @Nullable()
  readonly tenantBudget?: BudgetConfig | null;

  @Option(
    'the secret of the HMAC behind [pseudonyms](masking.md#pseudonyms), at least 32 characters, the same on every replica',
  )
  @IsString()
  @MinLength(32)
  @Nullable()
  readonly maskingKey?: string | null;

  @Option('the rules of classes, by name')
  @MapOf(ClassEntry, {
    pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$',
    description: 'a letter or _, then letters, digits and _, 128 characters at most',
  })
  readonly classes?: Readonly<Record<string, ClassEntry>>;
}
