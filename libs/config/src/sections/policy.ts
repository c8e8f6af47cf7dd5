import type { Tier } from '#core';
import type { ClassConfig, MaskConfig, TenantScopeConfig } from '#policy';
import { schemaOf } from '../schema/class-schema.js';
import {
  Allow,
  AnyOf,
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
  IsText,
  IsTexts,
  MapOf,
  Matches,
  Max,
  Min,
  MinLength,
  Nested,
  Nullable,
  Option,
} from '../schema/option.js';
import type { SchemaNode } from '../schema/schema-node.js';

/** Permission levels, as options name them. */
export const TIERS: readonly Tier[] = ['readonly', 'write', 'admin'];

/** Limits of data use, of an agent's principals or of a tenant. */
export class BudgetConfig {
  @Option('calls that passed the gates before this one; a task is one')
  @IsInt()
  @Min(1)
  readonly calls?: number;

  @Option('rows that the database handed out, before any was withheld; rows written')
  @IsInt()
  @Min(1)
  readonly rows?: number;

  @Option('results')
  @IsInt()
  @Min(1)
  readonly bytes?: number;

  @Option('milliseconds that operations took, waiting for a connection included')
  @IsInt()
  @Min(1)
  readonly databaseTime?: number;

  @Option('seconds; default 3600. It slides in twentieths: a use counts for at most one longer', {
    default: 3600,
  })
  @IsNumber()
  @IsPositive()
  readonly window?: number;
}

class KeptCharacters {
  @Option('characters at the end that stay readable', { required: true })
  @IsInt()
  @Min(1)
  @Max(8)
  readonly keep!: number;
}

class PartialMask {
  @Option('masks all but the last characters', { required: true })
  @Nested(KeptCharacters)
  readonly mask!: KeptCharacters;
}

class PseudonymOptions {
  @Option('fields of one domain share their pseudonyms')
  @IsString()
  @Matches(/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/)
  readonly domain?: string;

  @Option('tenants share them as well', { default: false })
  @IsBoolean()
  readonly acrossTenants?: boolean;
}

class PseudonymMask {
  @Option('a pseudonym in the place of the value', { required: true })
  @Nested(PseudonymOptions)
  readonly hash!: PseudonymOptions;
}

const MASK_FORMS = [{ enum: ['none', 'drop', 'deny', 'mask', 'hash'] }, PartialMask, PseudonymMask] as const;

/** One form per tier; a tier that is not named is masked as the one below it. */
class MaskByTier {
  @Option('for agents of this tier, and those above it that are not named', { required: true })
  @AnyOf(...MASK_FORMS)
  readonly readonly!: MaskConfig;

  @Option('for agents of this tier, and `admin` if it is not named')
  @AnyOf(...MASK_FORMS)
  readonly write?: MaskConfig;

  @Option('for agents of this tier')
  @AnyOf(...MASK_FORMS)
  readonly admin?: MaskConfig;
}

const MASK: SchemaNode = {
  anyOf: [MASK_FORMS[0], schemaOf(PartialMask), schemaOf(PseudonymMask), schemaOf(MaskByTier)],
};

class HiddenFromMasterKeyToo {
  @Option('an agent in true master posture may name the class directly', { required: true })
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

  @Option('tiers that are not bound to a tenant, or in code a function of the agent; default: nobody')
  @AnyOf({ type: 'array', items: { enum: TIERS } }, { not: { type: 'array' } })
  readonly bypass?: TenantScopeConfig['bypass'];
}

export class SearchableConfig {
  @Option('the column with the vector. It is compared, and read only where `fields` lists it', {
    required: true,
  })
  @IsText()
  readonly field!: string;

  @Option(
    'what a search may filter on. Of Atlas they need to be filter fields of the vector index for `vector_filter`',
  )
  @IsTexts()
  readonly filterFields?: readonly string[];

  @Option(
    'whose text the vector stands for; must be among `fields`. The first one is what `semantic_search` hands back',
  )
  @IsTexts()
  @ArrayMinSize(1)
  readonly textFields?: readonly string[];

  @Option('name of the vector index', { default: 'vector_index' })
  @IsText()
  readonly index?: string;
}

class Property {
  @Option('what a write may put into a column that does not exist yet')
  @IsString()
  readonly type?: string;

  @Option('told to agents, as data')
  @IsString()
  @Nullable()
  readonly description?: string | null;

  @Option('what an array of pointers holds, so that it can be included')
  @IsString()
  readonly targetClass?: string;

  @Option('the stored column when it has another name')
  @IsString()
  @Matches(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/)
  readonly field?: string;

  @Option('value → meaning')
  @MapOf({ type: ['string', 'null'] })
  readonly enum?: Readonly<Record<string, string | null>>;
}

const MASKED_PATH: SchemaNode = {
  pattern: '^[A-Za-z][A-Za-z0-9_]*(\\.[A-Za-z][A-Za-z0-9_]*){0,7}$',
  maxLength: 256,
};

/** One entry of `policy.classes`: the rules of a class. What the class has in the database is checked by `#policy`. */
export class ClassEntry {
  @Option('told to agents, as data, at most 200 characters')
  @IsString()
  @Nullable()
  readonly description?: string | null;

  @Option('told to agents, as data, at most 200 characters')
  @IsString()
  @Nullable()
  readonly usage?: string | null;

  @Option(
    'not an access rule: when any class is visible, relations and suggestions name visible classes only',
    { default: false },
  )
  @IsBoolean()
  readonly visible?: boolean;

  @Option(
    '`true`: no tool reaches it, by any path, and no listing names it. `{ except: masterKey }`: an agent in true master posture may name it directly; joins, includes and listings still may not. `_Product`, `_Session`, `_JobStatus`, `_JobSchedule` are hidden unless you say `hidden: false`',
    { default: false },
  )
  @AnyOf({ type: 'boolean' }, HiddenFromMasterKeyToo)
  readonly hidden?: boolean | HiddenFromMasterKeyToo;

  @Option(
    'the readable fields. Anything else can be neither returned, filtered, sorted, grouped, joined nor computed with. `objectId`, `createdAt`, `updatedAt` always belong',
  )
  @IsTexts()
  readonly fields?: readonly string[];

  @Option('what of the class comes along when it is an included pointer; must be among `fields`')
  @IsTexts()
  readonly joinFields?: readonly string[];

  @Option('marked `large_field` in schemas and left out of included rows')
  @IsTexts()
  readonly largeFields?: readonly string[];

  @Option(
    'per field and tier, what stands for the value: `drop`, `deny`, `mask`, `hash` ([masking](masking.md))',
  )
  @MapOf(MASK, MASKED_PATH)
  readonly masks?: ClassConfig['masks'];

  @Option(
    'the default view (not a security boundary): applied to every read but of rows named by id; agents may switch it off for [some tools](tools.md)',
  )
  @IsObject()
  @Nullable()
  readonly canonicalFilter?: Readonly<Record<string, unknown>> | null;

  @Option(
    "`field` holds the tenant; every read, join and include carries the agent's `tenantId`. Agents without one are refused; an id that names no row of the agent's tenant is refused in the same words whether another tenant has that row or nobody (the audit record tells: `cause`). `bypass` lists tiers; see [tenants](#tenants)",
  )
  @Nested(TenantScope)
  @Nullable()
  readonly tenantScope?: TenantScope | null;

  @Option('exempt from `refuseCollscan`', { default: false })
  @IsBoolean()
  readonly allowCollscan?: boolean;

  @Option('may be searched by likeness: see [searchable classes](#searchable)')
  @Nested(SearchableConfig)
  @Nullable()
  readonly searchable?: SearchableConfig | null;

  @Option('name of the Atlas Search index for words', { default: 'default' })
  @IsText()
  readonly searchIndex?: string;

  @Option(
    'per field: `description`, `type` (what a write may put into a column that does not exist yet), `enum` (value → meaning), `field` (the stored column when it has another name), `targetClass` (what an array of pointers holds, so that it can be included)',
  )
  @MapOf(Property)
  readonly properties?: Readonly<Record<string, Property>>;
}

/** The section `policy` (docs/guide/policy.md). Defaults are those of `#policy`, which compiles it. */
export class PolicySection {
  @Option("tiers whose calls need a person's yes; nobody to ask is a no", { default: [] })
  @IsArray()
  @IsIn([...TIERS], { each: true })
  readonly requireApprovalFor?: readonly string[];

  @Option('refuses queries and groupings whose constraint would read a whole collection', { default: false })
  @IsBoolean()
  readonly refuseCollscan?: boolean;

  @Option('plans are told whole, predicates of the operator included: explanations and refused scans', {
    default: false,
  })
  @IsBoolean()
  readonly exposeExplain?: boolean;

  @Option('a hidden class answers exactly as one that does not exist', { default: false })
  @IsBoolean()
  readonly concealHidden?: boolean;

  @Option('`get_schema` also tells which argument keys a declared method takes (`permitted_keys`)', {
    default: false,
  })
  @IsBoolean()
  readonly agentDebug?: boolean;

  @Option('rows carry `_source`', { default: false })
  @IsBoolean()
  readonly includeSourceProvenance?: boolean;

  @Option("CSV cells that a spreadsheet would run (`= + - @`, tab, return) get a `'` in front", {
    default: false,
  })
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

  @Option('silences the line about master posture at the start of the process', { default: false })
  @IsBoolean()
  readonly suppressMasterKeyWarning?: boolean;

  @Option(
    'agents with `identity: { role }` read rows that name the role or nobody, not those that name everyone (`*`)',
    { default: false },
  )
  @IsBoolean()
  readonly strictRole?: boolean;

  @Option('reserved markers in schema text refuse the call instead of being neutralised', { default: false })
  @IsBoolean()
  readonly promptMarkerStrict?: boolean;

  @Option(
    'phrases, or `/patterns/i`, to look for in results; found ones are warned of in the log; `canaryAction: refuse` withholds the result',
    { default: [] },
  )
  @IsTexts()
  readonly promptInjectionCanaries?: readonly string[];

  @Option('what is done with a result that holds one of `promptInjectionCanaries`: `notify` or `refuse`')
  @IsIn(['notify', 'refuse', null])
  readonly canaryAction?: 'notify' | 'refuse' | null;

  @Option('what a million tokens cost whoever reads results; adds `est_cost_usd` to records', {
    default: null,
  })
  @IsNumber()
  @Min(0)
  @Nullable()
  readonly tokenCostPerMillionInput?: number | null;

  @Option('what a million tokens cost at the embeddings endpoint; adds `embed_cost_usd` to records', {
    default: null,
  })
  @IsNumber()
  @Min(0)
  @Nullable()
  readonly embedCostPerMillionTokens?: number | null;

  @Option('arguments that a built-in tool does not declare are refused, or passed over (`ignore`)', {
    default: 'refuse',
  })
  @IsIn(['refuse', 'ignore'])
  readonly unknownArguments?: 'refuse' | 'ignore';

  @Option('levels of [sub-agents](agents.md) below an agent', { default: 4 })
  @IsInt()
  @Min(0)
  readonly defaultRecursionDepth?: number;

  @Option('calls that the operation log keeps', { default: 1000 })
  @IsInt()
  @Min(1)
  @Max(1_000_000)
  readonly maxLogSize?: number;

  @Option('what each tenant may take of the data, over all agents: [budgets](configuration.md#budgets)')
  @Nested(BudgetConfig)
  @Nullable()
  readonly tenantBudget?: BudgetConfig | null;

  @Option(
    'the secret behind [pseudonyms](masking.md#pseudonyms), at least 32 characters, the same on every replica',
  )
  @IsString()
  @MinLength(32)
  @Nullable()
  readonly maskingKey?: string | null;

  @Option('the rules of classes, by name')
  @MapOf(ClassEntry, { pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' })
  readonly classes?: Readonly<Record<string, ClassEntry>>;
}
