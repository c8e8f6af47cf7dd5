import type { ParseRow } from '#data';
import type { ClassLevelPermissions, FieldSchema } from '#policy';
import type { StoredIndex } from '../schema/schema-row.js';

/** A class to create: what the seed declares and what its rows imply. */
export interface SeedClass {
  readonly className: string;
  readonly fields: ReadonlyMap<string, FieldSchema>;
  readonly classLevelPermissions: ClassLevelPermissions | null;
  /** Keys as written: logical names, or `_p_` columns as Parse's schema API takes them. */
  readonly indexes: readonly StoredIndex[];
}

export interface SeedUser {
  readonly objectId: string;
  readonly username: string;
  /** Plain text, hashed when it is loaded. */
  readonly password?: string;
  /** A bcrypt hash, stored as it is: many users load in no time. */
  readonly passwordHash?: string;
  /** Everything else on the row, ACL and email included. */
  readonly row: ParseRow;
}

export interface SeedRole {
  readonly objectId: string;
  readonly name: string;
  /** Object ids. */
  readonly users: readonly string[];
  /** Object ids of child roles. */
  readonly roles: readonly string[];
  readonly row: ParseRow;
}

export interface SeedSession {
  readonly objectId: string;
  readonly sessionToken: string;
  readonly userId: string;
  /** Default: a year from loading. */
  readonly expiresAt?: Date;
  readonly row: ParseRow;
}

/** One entry of a relation: a row of a join collection. */
export interface SeedRelation {
  readonly className: string;
  readonly field: string;
  readonly owningId: string;
  readonly relatedId: string;
}

/** A seed that was checked: every class known, every id given, every reference resolved. */
export interface Seed {
  readonly classes: readonly SeedClass[];
  readonly users: readonly SeedUser[];
  readonly roles: readonly SeedRole[];
  readonly sessions: readonly SeedSession[];
  readonly objects: ReadonlyMap<string, readonly ParseRow[]>;
  readonly relations: readonly SeedRelation[];
}

/** A seed file that cannot be loaded. All its faults at once, each with its path. */
export class SeedError extends Error {
  override readonly name = 'SeedError';
  constructor(readonly faults: readonly string[]) {
    super(`the seed has ${faults.length} fault${faults.length === 1 ? '' : 's'}:\n${faults.join('\n')}`);
  }
}
