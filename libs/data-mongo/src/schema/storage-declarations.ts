import type { FieldType } from '#policy';

/** The type of `_id` in a plain collection. */
export type IdKind = 'objectId' | 'string' | 'number' | 'uuid';

/** A declared column of a plain class, or a member of one. */
export interface PlainProperty {
  /** Default: what the validator of the collection or a sample says. */
  readonly type?: FieldType;
  /** Pointer: the class whose `_id` the column holds. Array: the class whose ids its entries are. */
  readonly targetClass?: string;
  /** The stored name. Default: the name of the property. */
  readonly field?: string;
  /** Object: its members. Array: the members of its entries. */
  readonly of?: ReadonlyMap<string, PlainProperty>;
}

/** A collection that Parse did not write, as the configuration declares it. */
export interface PlainClassDeclaration {
  readonly className: string;
  readonly collection: string;
  /** Null: as the documents hold it. */
  readonly id: IdKind | null;
  /** Stored names; null: the class has none. */
  readonly timestamps: { readonly createdAt: string; readonly updatedAt: string } | null;
  /** By the name that agents use. */
  readonly properties: ReadonlyMap<string, PlainProperty>;
}

/** Which classes there are, and how each is stored. */
export interface StorageDeclarations {
  /** Classes of `_SCHEMA` that exist for agents: all of them, or those that the policy lists; empty: it is not read. */
  readonly parse: 'all' | ReadonlySet<string>;
  readonly plain: readonly PlainClassDeclaration[];
}

/** Every class of `_SCHEMA`, and no other. */
export const PARSE_ALONE: StorageDeclarations = { parse: 'all', plain: [] };
