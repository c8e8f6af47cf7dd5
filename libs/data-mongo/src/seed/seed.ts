import type { ParseRow } from '#data';
import { type ClassLevelPermissions, type FieldSchema, isPlainObject } from '#policy';
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
  /** Plain text, hashed when the seed is loaded. */
  readonly password?: string;
  /** A bcrypt hash, stored unchanged: loading many users needs no hashing. */
  readonly passwordHash?: string;
  /** All other fields of the row, ACL and email included. */
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

/** A checked seed: every class is known, every id is set, every reference is resolved. */
export interface Seed {
  readonly classes: readonly SeedClass[];
  readonly users: readonly SeedUser[];
  readonly roles: readonly SeedRole[];
  readonly sessions: readonly SeedSession[];
  readonly objects: ReadonlyMap<string, readonly ParseRow[]>;
  readonly relations: readonly SeedRelation[];
  /** Documents by the name of their collection, stored as they are: values of the driver, or MongoDB Extended JSON. */
  readonly collections: ReadonlyMap<string, readonly object[]>;
}

/** A seed file that cannot be loaded. Contains all issues, each with its path. */
export class SeedError extends Error {
  override readonly name = 'SeedError';
  constructor(readonly faults: readonly string[]) {
    super(`the seed has ${faults.length} fault${faults.length === 1 ? '' : 's'}:\n${faults.join('\n')}`);
  }
}

/** Collects the issues of a document, so that all of them are reported at once. */
export class SeedIssues {
  readonly issues: string[] = [];

  add(path: string, problem: string): void {
    this.issues.push(`${path}: ${problem}`);
  }

  /** The object at a path, or an empty one after noting the issue. */
  object(value: unknown, path: string, known?: readonly string[]): Record<string, unknown> {
    if (!isPlainObject(value)) {
      this.add(path, 'must be an object');
      return {};
    }
    for (const key of known ? Object.keys(value) : []) {
      if (!known?.includes(key)) this.add(`${path}.${key}`, `unknown key; known: ${known?.join(', ')}`);
    }
    return value;
  }

  list(value: unknown, path: string): readonly unknown[] {
    if (value === undefined) return [];
    if (Array.isArray(value)) return value;
    this.add(path, 'must be a list');
    return [];
  }

  strings(value: unknown, path: string): readonly string[] {
    return this.list(value, path).filter((entry, index): entry is string => {
      if (typeof entry === 'string') return true;
      this.add(`${path}[${index}]`, 'must be text');
      return false;
    });
  }

  text(value: unknown, path: string): string | undefined {
    if (typeof value === 'string' && value !== '') return value;
    this.add(path, 'must be text');
    return undefined;
  }

  optionalText(value: unknown, path: string): string | undefined {
    return value === undefined ? undefined : this.text(value, path);
  }

  date(value: unknown, path: string): Date | undefined {
    const iso: unknown = isPlainObject(value) && value['__type'] === 'Date' ? value['iso'] : value;
    const date = new Date(typeof iso === 'string' ? iso : Number.NaN);
    if (!Number.isNaN(date.getTime())) return date;
    this.add(path, 'must be an ISO 8601 date');
    return undefined;
  }

  /** Records an issue for a value that occurs twice in the same set. */
  unique(seen: Set<string>, value: string, path: string): void {
    if (seen.has(value)) this.add(path, `'${value}' is used twice`);
    seen.add(value);
  }
}
