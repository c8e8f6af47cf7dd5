import {
  type AgentDefinitionOptions,
  type NameFilterOptions,
  type Tier,
  TOOL_PROFILES,
  WRITE_MODES,
  type WriteMode,
} from '#core';
import type { TenantClaim, UserClaim } from '#auth';
import { USER_FIELDS } from '#data';
import { Equals, IsBoolean, IsIn, IsInt, IsNumber, IsPositive, IsString, Max, Min } from 'class-validator';
import { Nullable, type SchemaNode } from '#schema';
import { AnyOf, IsTexts, MapOf, Nested, Option, type Plain } from '../schema/option.js';
import { CLAIM } from './auth.js';
import { AgentLlmConfig } from './models.js';
import { BudgetConfig, TIERS } from './policy.js';

const LABEL = 'stands in audit records as `impersonation_label`, at most 128 characters';

class SessionIdentity {
  @Option('the session of the caller', { required: true })
  @Equals('caller')
  readonly session!: 'caller';
}

class UserIdentity {
  @Option('objectId of the user', { required: true })
  @IsString()
  readonly user!: string;

  @Option(LABEL)
  @IsString()
  readonly label?: string;
}

class ClaimIdentity {
  @Option("the claim of the caller's token that names the user", { required: true })
  @AnyOf(...CLAIM)
  readonly claim!: string | readonly string[];

  @Option('the field of the user that the claim contains', { default: 'objectId' })
  @IsIn([...USER_FIELDS])
  readonly field?: UserClaim['field'];

  @Option(LABEL)
  @IsString()
  readonly label?: string;
}

class ImpersonationIdentity {
  @Option('objectId of the user', { required: true })
  @IsString()
  readonly impersonate!: string;

  @Option('creates a restricted session of one hour when the user has none', { default: false })
  @IsBoolean()
  readonly mint?: boolean;

  @Option(LABEL)
  @IsString()
  readonly label?: string;
}

class RoleIdentity {
  @Option('name of the role', { required: true })
  @IsString()
  readonly role!: string;

  @Option(LABEL)
  @IsString()
  readonly label?: string;
}

/** With whose rights an agent reads (docs/reference/configuration.md#identities). */
type IdentityConfig =
  'master' | SessionIdentity | UserIdentity | ClaimIdentity | ImpersonationIdentity | RoleIdentity;

class OnlyAndExcept {
  @Option('only these; empty: no limit')
  @IsTexts()
  readonly only?: readonly string[];

  @Option('all except these; overrides `only`')
  @IsTexts()
  readonly except?: readonly string[];
}

class ToolProfile {
  @Option('a named set of tools', { required: true })
  @IsIn(TOOL_PROFILES)
  readonly profile!: 'lean';
}

class TenantClaimConfig {
  @Option("the claim of the caller's token that holds the tenant", { required: true })
  @AnyOf(...CLAIM)
  readonly claim!: string | readonly string[];

  @Option('refuses callers without this claim; otherwise they have no tenant', { default: true })
  @IsBoolean()
  readonly required?: boolean;
}

const NAMES: SchemaNode = { type: 'array', items: { type: 'string', minLength: 1 } };
const NAME_FILTER = [NAMES, { type: 'null' }, OnlyAndExcept] as const;

/** One entry of `agents`: a named set of limits, and with whose rights it reads. */
export class AgentEntry {
  @Option('`readonly`, `write` or `admin`', { default: 'readonly' })
  @IsIn(TIERS)
  readonly permissions?: Tier;

  @Option('the rights with which rows are read: see [identities](#identities)', { default: 'master' })
  @AnyOf(
    { const: 'master' },
    SessionIdentity,
    UserIdentity,
    ClaimIdentity,
    ImpersonationIdentity,
    RoleIdentity,
  )
  readonly identity?: IdentityConfig;

  @Option('the language model that uses this agent in [chat and console](chat.md)')
  @Nested(AgentLlmConfig)
  readonly llm?: AgentLlmConfig;

  @Option('`[names]`, `{ only, except }` or `{ profile: lean }`; an empty list means none')
  @AnyOf(...NAME_FILTER, ToolProfile)
  readonly tools?: NameFilterOptions | ToolProfile;

  @Option('declared methods, bare or `Class.method`')
  @AnyOf(...NAME_FILTER)
  readonly methods?: NameFilterOptions;

  @Option('in the same forms; `User` and `_User` are one class')
  @AnyOf(...NAME_FILTER)
  readonly classes?: NameFilterOptions;

  @Option(
    'a constraint per class, and `default` for every class, of which the entry of a class replaces the same columns; added to every read and cannot be switched off',
  )
  @MapOf({ type: 'object' })
  readonly filters?: AgentDefinitionOptions['filters'];

  @Option(
    "the tenant for classes with a tenant scope; `{ claim: NAME }` takes it from the caller's [token](oauth.md#who-is-calling)",
    { default: null },
  )
  @AnyOf({ type: ['string', 'number', 'null'] }, TenantClaimConfig)
  readonly tenantId?: string | number | null | TenantClaim;

  @Option('permits the raw write tools')
  @IsBoolean()
  readonly allowMutations?: boolean;

  @Option(
    '`direct`: writes happen when they are called. `proposed`: they wait in a [change set](changes.md) until a person has approved all of it; a sub-agent has at least what its parent has',
    { default: 'direct' },
  )
  @IsIn([...WRITE_MODES])
  readonly writes?: WriteMode;

  @Option(
    'acts as a client without a master key: client-safe tools only, and `identity` is `{ session: caller }`',
    { default: false },
  )
  @IsBoolean()
  readonly clientMode?: boolean;

  @Option(
    'may count [facets](tools.md#search), which no row filter can narrow; a sub-agent has it only from its parent',
    { default: false },
  )
  @IsBoolean()
  @Nullable()
  readonly masterAtlas?: boolean | null;

  @Option('maximum bytes of the text of a result; a sub-agent has at most that of its parent')
  @IsInt()
  @Min(4096)
  @Max(4_194_304)
  @Nullable()
  readonly maxResultBytes?: number | null;

  @Option('calls of a principal within `rateWindow`, on all replicas together', { default: 60 })
  @IsInt()
  @Min(1)
  readonly rateLimit?: number;

  @Option('seconds', { default: 60 })
  @IsNumber()
  @IsPositive()
  readonly rateWindow?: number;

  @Option('the data that a principal may use: see [budgets](#budgets)')
  @Nested(BudgetConfig)
  @Nullable()
  readonly budget?: BudgetConfig | null;

  @Option("levels of [sub-agents](agents.md) below it; default: the policy's `defaultRecursionDepth`", {
    default: 4,
  })
  @IsInt()
  @Min(0)
  readonly recursionDepth?: number;

  @Option('unknown names in `tools` stop the start instead of causing a warning')
  @IsBoolean()
  readonly strictToolFilter?: boolean;

  @Option(
    'unknown names of classes in `classes.only` and `filters` stop the start instead of causing a warning. A filter on a class that does not exist applies as soon as the class exists',
  )
  @IsBoolean()
  readonly strictClassFilter?: boolean;
}

export type AgentConfig = Plain<AgentEntry>;
