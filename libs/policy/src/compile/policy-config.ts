import type { BudgetOptions } from '#agent';
import type { BypassFunction, TenantSource } from '../model/policy.js';
import { type MasksConfig, MASKS_SCHEMA } from '../masking/compile-masks.js';

/**
 * The `policy` section of the configuration as JSON Schema: unknown keys and wrong types are faults.
 * What a schema cannot say (names that clash, filters that do not translate) is checked by `compilePolicy`.
 */
const names = { type: 'array', items: { type: 'string', minLength: 1 } } as const;
const text = { type: ['string', 'null'] } as const;
const flag = { type: 'boolean' } as const;
const cost = { type: ['number', 'null'], minimum: 0 } as const;
const tiers = { type: 'array', items: { enum: ['readonly', 'write', 'admin'] } } as const;

const PROPERTY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    type: { type: 'string' },
    description: text,
    targetClass: { type: 'string' },
    field: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' },
    enum: { type: 'object', additionalProperties: { type: ['string', 'null'] } },
  },
} as const;

const CLASS = {
  type: 'object',
  additionalProperties: false,
  properties: {
    description: text,
    usage: text,
    visible: flag,
    hidden: {
      anyOf: [
        { type: 'boolean' },
        {
          type: 'object',
          additionalProperties: false,
          required: ['except'],
          properties: { except: { const: 'masterKey' } },
        },
      ],
    },
    fields: names,
    joinFields: names,
    largeFields: names,
    masks: MASKS_SCHEMA,
    canonicalFilter: { type: ['object', 'null'] },
    tenantScope: {
      type: ['object', 'null'],
      additionalProperties: false,
      required: ['field'],
      // Code may give functions, which are checked where the class is compiled.
      properties: {
        field: { type: 'string', minLength: 1 },
        from: {},
        bypass: { anyOf: [tiers, { not: { type: 'array' } }] },
      },
    },
    allowCollscan: flag,
    searchable: {
      type: ['object', 'null'],
      additionalProperties: false,
      required: ['field'],
      properties: {
        field: { type: 'string', minLength: 1 },
        filterFields: names,
        textFields: { ...names, minItems: 1 },
        index: { type: 'string', minLength: 1 },
      },
    },
    searchIndex: { type: 'string', minLength: 1 },
    properties: { type: 'object', additionalProperties: PROPERTY },
  },
} as const;

const atLeastOne = { type: 'integer', minimum: 1 } as const;

/** Limits of data use, of an agent's principals or of a tenant. */
export const BUDGET_CONFIG_SCHEMA = {
  type: ['object', 'null'],
  additionalProperties: false,
  properties: {
    calls: atLeastOne,
    rows: atLeastOne,
    bytes: atLeastOne,
    databaseTime: atLeastOne,
    window: { type: 'number', exclusiveMinimum: 0 },
  },
} as const;

export const POLICY_CONFIG_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    requireApprovalFor: tiers,
    refuseCollscan: flag,
    exposeExplain: flag,
    concealHidden: flag,
    agentDebug: flag,
    includeSourceProvenance: flag,
    neutralizeFormulas: flag,
    strictToolFilter: flag,
    strictClassFilter: flag,
    suppressMasterKeyWarning: flag,
    strictRole: flag,
    promptMarkerStrict: flag,
    promptInjectionCanaries: names,
    canaryAction: { enum: ['notify', 'refuse', null] },
    tokenCostPerMillionInput: cost,
    embedCostPerMillionTokens: cost,
    unknownArguments: { enum: ['refuse', 'ignore'] },
    defaultRecursionDepth: { type: 'integer', minimum: 0 },
    maxLogSize: { type: 'integer', minimum: 1, maximum: 1_000_000 },
    tenantBudget: BUDGET_CONFIG_SCHEMA,
    maskingKey: { type: ['string', 'null'], minLength: 32 },
    classes: {
      type: 'object',
      propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' },
      additionalProperties: CLASS,
    },
  },
} as const;

export interface PropertyConfig {
  readonly type?: string;
  readonly description?: string | null;
  readonly targetClass?: string;
  /** The stored column, when it is not the property's own name. */
  readonly field?: string;
  readonly enum?: Readonly<Record<string, string | null>>;
}

export interface SearchableConfig {
  readonly field: string;
  /** Default none. */
  readonly filterFields?: readonly string[];
  /** Default: any readable text. */
  readonly textFields?: readonly string[];
  /** Default `vector_index`. */
  readonly index?: string;
}

export interface TenantScopeConfig {
  readonly field: string;
  /** `{ claim: 'account_id' }`, or in code a function of the agent. Default: the agent's `tenantId`. */
  readonly from?: Exclude<TenantSource, 'tenantId'>;
  /** Tiers, or in code a function of the agent. Default: nobody. */
  readonly bypass?: readonly string[] | BypassFunction;
}

export interface ClassConfig {
  readonly description?: string | null;
  readonly usage?: string | null;
  readonly visible?: boolean;
  readonly hidden?: boolean | { readonly except: 'masterKey' };
  readonly fields?: readonly string[];
  readonly joinFields?: readonly string[];
  readonly largeFields?: readonly string[];
  /** By field or path inside one. */
  readonly masks?: MasksConfig;
  readonly canonicalFilter?: Readonly<Record<string, unknown>> | null;
  readonly tenantScope?: TenantScopeConfig | null;
  readonly allowCollscan?: boolean;
  readonly searchable?: SearchableConfig | null;
  /** Default `default`. */
  readonly searchIndex?: string;
  readonly properties?: Readonly<Record<string, PropertyConfig>>;
}

export interface PolicyConfig extends Partial<
  Omit<import('../model/policy.js').PolicySwitches, 'strictPointerShapes'>
> {
  readonly classes?: Readonly<Record<string, ClassConfig>>;
  readonly tenantBudget?: BudgetOptions | null;
  /** Secret behind the pseudonyms of hashed fields, at least 32 characters, the same on every replica. */
  readonly maskingKey?: string | null;
}
