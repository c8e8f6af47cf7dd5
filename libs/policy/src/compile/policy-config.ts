import type { BudgetOptions } from '#core';
import type { StorageForm } from '../model/class-schema.js';
import type { BypassFunction, IdKind, ReadHooks, TenantSource } from '../model/policy.js';
import type { MasksConfig } from '../masking/compile-masks.js';

export interface PropertyConfig {
  readonly type?: string;
  readonly description?: string | null;
  readonly targetClass?: string;
  /** The column, when its name differs from the property's. */
  readonly field?: string;
  readonly enum?: Readonly<Record<string, string | null>>;
  /** Plain classes only: the members of an Object, or of the entries of an Array. */
  readonly of?: Readonly<Record<string, MemberConfig>>;
}

/** A member of a nested document: its type alone, or with the options of a property. */
export type MemberConfig = string | PropertyConfig;

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
  /** Permission levels, or in code a function of the agent. Default: none. */
  readonly bypass?: readonly string[] | BypassFunction;
}

export interface ClassConfig {
  /** Name of one of `databases`. Default: the first one. */
  readonly database?: string;
  /** Default: that of the database. */
  readonly storage?: StorageForm;
  /** Plain classes only, as all until `timestamps`. Default: the name of the class. */
  readonly collection?: string;
  /** The type of `_id`. Default: what the documents hold. */
  readonly id?: IdKind;
  /** Stored names; null: the class has none. Default: the names of Mongoose, which are those of Parse. */
  readonly timestamps?: { readonly createdAt?: string; readonly updatedAt?: string } | null;
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
  /** A constraint on every read, of every agent. */
  readonly filters?: Readonly<Record<string, unknown>> | null;
  readonly tenantScope?: TenantScopeConfig | null;
  readonly allowCollscan?: boolean;
  readonly readHooks?: ReadHooks;
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
