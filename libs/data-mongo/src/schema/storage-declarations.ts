import type { PlainStorageRules } from '#policy';

/** A collection that Parse did not write, as the policy declares it. */
export interface PlainClassDeclaration extends PlainStorageRules {
  readonly className: string;
  /** Name of the database that holds it. Default: that of the service. */
  readonly database?: string;
}

/** The classes of Parse of a database beside that of the service. */
interface FurtherDeclarations {
  /** Those that exist for agents. */
  readonly parse: ReadonlySet<string>;
  /** Collections that no plain class may read where Parse stores them: their ACLs protect the rows. Default none. */
  readonly guarded?: ReadonlySet<string>;
}

/** Which classes there are, and how each is stored. */
export interface StorageDeclarations {
  /** Classes of `_SCHEMA` that exist for agents: all of them, or those that the policy lists; empty: it is not read. */
  readonly parse: 'all' | ReadonlySet<string>;
  /** Of databases beside that of the service, by the name of the database. Default none. */
  readonly further?: ReadonlyMap<string, FurtherDeclarations>;
  readonly plain: readonly PlainClassDeclaration[];
}

/** Every class of `_SCHEMA`, and no other. */
export const PARSE_ALONE: StorageDeclarations = { parse: 'all', plain: [] };
