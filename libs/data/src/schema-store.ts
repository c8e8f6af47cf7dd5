import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { ageClock } from '#core';
import type { ClassLevelPermissions, ClassSchema, FieldSchema, IndexSchema, SchemaSnapshot } from '#policy';
import { NEVER, type Observable, Subject } from 'rxjs';
import { MessageBus } from '#state';
import type { CachedPrincipalDirectory } from './identity/principal-directory.js';
import { type OperationContext, StoreError } from './record-store.js';

/** The existing classes and the types of their fields. */
export abstract class SchemaCatalogue {
  /** The classes of a tenant, and those of all. Default: they are the same. */
  forTenant(_tenant: string | number | null | undefined): SchemaCatalogue {
    return this;
  }
  /** A recent snapshot; cheap, because it is cached and renewed ahead of time. @throws StoreError */
  abstract snapshot(): Promise<SchemaSnapshot>;
  /** The same where nothing has to be read first; null: `snapshot` reads. Default: null. */
  snapshotNow(): SchemaSnapshot | null {
    return null;
  }
  /**
   * The classes as they are now, for a name that is not among those of `known`: before it is said that there is none. Read at
   * most once a second for all callers; in between, and by default, `known`. @throws StoreError
   */
  lookAgain(known: SchemaSnapshot): Promise<SchemaSnapshot> {
    return Promise.resolve(known);
  }
  /**
   * Every index of a class of a snapshot, and which are unique: read when needed, and cached as long as that snapshot.
   * @throws StoreError when one of them cannot be read
   */
  abstract listIndexes(schema: ClassSchema): Promise<readonly IndexSchema[]>;
  /** Every snapshot that was read, the first one included. Default: none is known. */
  get renewals(): Observable<SchemaSnapshot> {
    return NEVER;
  }
  /** Tenants one of whose own classes was read with other columns than before. Default: no tenant has classes of its own. */
  get tenantChanges(): Observable<string> {
    return NEVER;
  }
  /** The next call reads the classes again: after a class was created or changed. */
  abstract invalidate(): void;
}

/** Everything of classes that a list of tools may depend on. */
export function describeClasses(classes: readonly ClassSchema[]): string {
  return JSON.stringify(
    classes.map(({ className, classLevelPermissions, fields }) => [
      className,
      classLevelPermissions,
      [...fields].map(([name, { type, targetClass = '' }]) => `${name} ${type} ${targetClass}`).sort(),
    ]),
  );
}

/** A fixed set of class schemas, which every adapter's catalogue returns. */
export class ClassSchemas implements SchemaSnapshot {
  private readonly classes: ReadonlyMap<string, ClassSchema>;
  private readonly names: readonly string[];

  constructor(schemas: Iterable<ClassSchema>) {
    this.classes = new Map([...schemas].map((schema) => [schema.className, schema]));
    this.names = [...this.classes.keys()].sort();
  }

  /** Undefined: no such class. */
  get(className: string): ClassSchema | undefined {
    return this.classes.get(className);
  }

  /** Sorted. */
  classNames(): readonly string[] {
    return this.names;
  }
}

export interface CatalogueOptions {
  /** Milliseconds for which a snapshot is used. Default 30 000. */
  readonly maxAge?: number;
  /** Milliseconds; for tests. */
  readonly now?: () => number;
}

/** Part of its age after which a snapshot that is in use is renewed ahead of time: callers of a busy service do not wait. */
const RENEWED_AT = 2 / 3;

/** Milliseconds after which a read that stalls is given up, so that the next caller may try another one. */
const LONGEST_READ = 10_000;

/** Milliseconds between two reads for names that are not known, and how much longer than such a read the rest is. */
const LOOK_INTERVAL = 1_000;
const LOOK_REST = 10;

/**
 * Decides when a snapshot is read again, for every source of classes. Permissions decide, so a snapshot past its age is never
 * used: the caller waits for the next one, and is refused when that cannot be read. Concurrent requests share one read.
 */
export abstract class RenewedCatalogue extends SchemaCatalogue {
  private current: { readonly snapshot: SchemaSnapshot; readonly readAt: number } | null = null;
  private reading: Promise<SchemaSnapshot> | null = null;
  private looking: Promise<SchemaSnapshot> | null = null;
  /** Until then no names are looked for: invented ones must not cause a read each. */
  private nextLook = -Infinity;
  private readonly renewed = new Subject<SchemaSnapshot>();
  /** Emits when a class was created or changed through this catalogue. */
  readonly invalidated = new Subject<void>();
  private readonly maxAge: number;
  private readonly now: () => number;

  constructor({ maxAge = 30_000, now = ageClock }: CatalogueOptions = {}) {
    super();
    this.maxAge = maxAge;
    this.now = now;
  }

  async snapshot(): Promise<SchemaSnapshot> {
    return this.snapshotNow() ?? this.read();
  }

  override snapshotNow(): SchemaSnapshot | null {
    const { current } = this;
    if (!current) return null;
    const age = this.now() - current.readAt;
    // A clock that was set back tells no age.
    if (age < 0 || age >= this.maxAge) return null;
    // The next caller repeats a failed renewal.
    if (age >= this.maxAge * RENEWED_AT && !this.reading) this.read().catch(() => undefined);
    return current.snapshot;
  }

  override lookAgain(known: SchemaSnapshot): Promise<SchemaSnapshot> {
    if (this.looking) return this.looking;
    const newer = this.snapshotNow();
    if (newer !== known) return this.snapshot();
    const began = this.now();
    if (began < this.nextLook) return Promise.resolve(known);
    // A read that is going on may have missed the names.
    this.reading = null;
    this.looking = this.read('names').finally(() => {
      this.nextLook = this.now() + Math.max(LOOK_INTERVAL, (this.now() - began) * LOOK_REST);
      this.looking = null;
    });
    return this.looking;
  }

  override get renewals(): Observable<SchemaSnapshot> {
    return this.renewed;
  }

  invalidate(): void {
    this.forget();
    this.invalidated.next();
  }

  /** The next call reads the classes again. Listeners receive no event. */
  forget(): void {
    this.current = null;
    this.reading = null;
  }

  /** Reads the classes from their store. @param why `names`: for a name that is not known yet. @throws StoreError */
  protected abstract load(why: 'age' | 'names'): Promise<SchemaSnapshot>;

  private read(why: 'age' | 'names' = 'age'): Promise<SchemaSnapshot> {
    if (this.reading) return this.reading;
    // What is stored may change while it is read.
    const readAt = this.now();
    const reading: Promise<SchemaSnapshot> = withinTime(this.load(why))
      .then((snapshot) => {
        // A read that began before an invalidation may have missed the change.
        if (this.reading !== reading) return snapshot;
        const { current } = this;
        // What was worked out for a snapshot stays when somebody names what does not exist.
        if (why === 'names' && current && haveSameClasses(current.snapshot, snapshot))
          return current.snapshot;
        this.current = { snapshot, readAt };
        this.renewed.next(snapshot);
        return snapshot;
      })
      .finally(() => {
        if (this.reading === reading) this.reading = null;
      });
    this.reading = reading;
    return reading;
  }
}

function haveSameClasses(one: SchemaSnapshot, other: SchemaSnapshot): boolean {
  const names = one.classNames();
  return (
    isDeepStrictEqual(names, other.classNames()) &&
    names.every((name) => isDeepStrictEqual(one.get(name), other.get(name)))
  );
}

/** @throws StoreError `unavailable` when it takes longer than any read may */
async function withinTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_, reject) => {
    const cause = new Error(`the classes could not be read within ${LONGEST_READ} ms`);
    timer = setTimeout(() => reject(new StoreError('unavailable', { cause })), LONGEST_READ);
  });
  try {
    return await Promise.race([work, tooLong]);
  } finally {
    clearTimeout(timer);
  }
}

/** Permissions of a new class: every operation is named and granted to no caller. */
export const NO_PERMISSIONS: ClassLevelPermissions = Object.freeze({
  find: {},
  count: {},
  get: {},
  create: {},
  update: {},
  delete: {},
  addField: {},
  protectedFields: { '*': [] },
});

export interface NewClass {
  readonly className: string;
  /** Without the columns that every class has. */
  readonly fields: ReadonlyMap<string, FieldSchema>;
}

/**
 * Creates and deletes classes, in Parse's terms. It has no information about agents: only governed access may hold
 * one.
 * @throws StoreError
 */
export abstract class SchemaWriter {
  /**
   * The new class is closed: only the master key has rights to it until an operator grants some.
   * @throws StoreError `duplicate` when the class exists
   */
  abstract createClass(newClass: NewClass, operation: OperationContext): Promise<void>;
  /** Removes a class without rows; a class with rows stays unchanged. */
  abstract deleteClass(
    className: string,
    operation: OperationContext,
  ): Promise<'deleted' | 'not_empty' | 'absent'>;
}

/** The message that notifies replicas which class was written. */
const WRITTEN_TOPIC = 'written-classes';

/** Parse stores classes and their permissions in rows of this class. */
const SCHEMA_ROWS = '_SCHEMA';

/** Classes whose contents are cached. */
const CACHED_CLASSES: ReadonlySet<string> = new Set(['_Session', '_User', '_Role']);

type Directory = Pick<CachedPrincipalDirectory, 'forgetClass'>;

/**
 * Publishes to all replicas which classes were written through this one, so that they invalidate what they cached of them. A
 * replica that misses the message reads again when its own cache expires.
 */
@Injectable()
export class WrittenClasses {
  private readonly replica = randomUUID();

  constructor(private readonly bus: MessageBus) {}

  /** Publishes the changes of the catalogue, and takes those of others. */
  watchSchemas(catalogue: RenewedCatalogue): void {
    this.hear((className) => {
      if (className === SCHEMA_ROWS) catalogue.forget();
    });
    catalogue.invalidated.subscribe(() => this.tell(SCHEMA_ROWS));
  }

  /** Wraps the directory so that its changes are published. */
  watchRows(directory: Directory): Directory {
    this.hear((className) => {
      if (CACHED_CLASSES.has(className)) directory.forgetClass(className);
    });
    return {
      forgetClass: (className) => {
        directory.forgetClass(className);
        if (CACHED_CLASSES.has(className)) this.tell(className);
      },
    };
  }

  private hear(runWrite: (className: string) => void): void {
    this.bus.messages(WRITTEN_TOPIC).subscribe(({ className, from }) => {
      // What this replica wrote it forgot at once: to forget it again would discard what was read since.
      if (typeof className === 'string' && from !== this.replica) runWrite(className);
    });
  }

  private tell(className: string): void {
    // The message is an optimisation: no result depends on its delivery.
    this.bus.publish(WRITTEN_TOPIC, { className, from: this.replica }).catch(() => undefined);
  }
}
