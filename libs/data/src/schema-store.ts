import { Injectable } from '@nestjs/common';
import type { ClassLevelPermissions, ClassSchema, FieldSchema, IndexSchema, SchemaSnapshot } from '#policy';
import { NEVER, type Observable, Subject } from 'rxjs';
import { MessageBus } from '#state';
import type { CachedPrincipalDirectory } from './identity/principal-directory.js';
import type { OperationContext } from './record-store.js';

/** The existing classes and the types of their fields. */
export abstract class SchemaCatalogue {
  /** A recent snapshot; cheap, because it is cached and refreshed in the background. @throws StoreError */
  abstract snapshot(): Promise<SchemaSnapshot>;
  /** The same where nothing has to be read first; null: `snapshot` reads. Default: null. */
  snapshotNow(): SchemaSnapshot | null {
    return null;
  }
  /**
   * Every index of a class of a snapshot, and which are unique: read when needed, and cached as long as that snapshot.
   * @throws StoreError when one of them cannot be read
   */
  abstract indexesOf(schema: ClassSchema): Promise<readonly IndexSchema[]>;
  /** Every snapshot that was read, the first one included. Default: none is known. */
  get renewals(): Observable<SchemaSnapshot> {
    return NEVER;
  }
  /** The next call reads the classes again: after a class was created or changed. */
  abstract invalidate(): void;
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
  /** Milliseconds after which a snapshot is renewed in the background. Default 30 000. */
  readonly maxAge?: number;
  /** Milliseconds; for tests. */
  readonly now?: () => number;
}

/** A snapshot that could not be renewed for this many ages is no longer served: permissions may have changed. */
const STALE_AGES = 10;

/** Decides when a snapshot is read again, for every source of classes. Concurrent requests share one read. */
export abstract class RenewedCatalogue extends SchemaCatalogue {
  private current: { readonly snapshot: SchemaSnapshot; readonly readAt: number } | null = null;
  private reading: Promise<SchemaSnapshot> | null = null;
  private readonly renewed = new Subject<SchemaSnapshot>();
  private readonly maxAge: number;
  private readonly now: () => number;

  constructor({ maxAge = 30_000, now = () => performance.now() }: CatalogueOptions = {}) {
    super();
    this.maxAge = maxAge;
    this.now = now;
  }

  async snapshot(): Promise<SchemaSnapshot> {
    return this.snapshotNow() ?? this.read();
  }

  override snapshotNow(): SchemaSnapshot | null {
    const age = this.current ? this.now() - this.current.readAt : Number.POSITIVE_INFINITY;
    if (!this.current || age > this.maxAge * STALE_AGES) return null;
    // The caller receives the old snapshot; the next caller repeats a failed renewal.
    if (age > this.maxAge) this.read().catch(() => undefined);
    return this.current.snapshot;
  }

  override get renewals(): Observable<SchemaSnapshot> {
    return this.renewed;
  }

  invalidate(): void {
    this.current = null;
    this.reading = null;
  }

  /** Reads the classes from their store. @throws StoreError */
  protected abstract load(): Promise<SchemaSnapshot>;

  private read(): Promise<SchemaSnapshot> {
    if (this.reading) return this.reading;
    const reading: Promise<SchemaSnapshot> = this.load()
      .then((snapshot) => {
        // A read that began before an invalidation may have missed the change.
        if (this.reading === reading) {
          this.current = { snapshot, readAt: this.now() };
          this.renewed.next(snapshot);
        }
        return snapshot;
      })
      .finally(() => {
        if (this.reading === reading) this.reading = null;
      });
    this.reading = reading;
    return reading;
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
 * Creates, extends and deletes classes, in Parse's terms. It has no information about agents: only governed access may hold
 * one.
 * @throws StoreError
 */
export abstract class SchemaWriter {
  /**
   * The new class is closed: only the master key has rights to it until an operator grants some.
   * @throws StoreError `duplicate` when the class exists
   */
  abstract createClass(newClass: NewClass, operation: OperationContext): Promise<void>;
  /** An existing column keeps its type. */
  abstract addFields(
    className: string,
    fields: ReadonlyMap<string, FieldSchema>,
    operation: OperationContext,
  ): Promise<void>;
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
const REMEMBERED: ReadonlySet<string> = new Set(['_Session', '_User', '_Role']);

type Directory = Pick<CachedPrincipalDirectory, 'forgetClass'>;

/**
 * Publishes to all replicas which classes were written through this one, so that they invalidate what they cached of them. A
 * replica that misses the message reads again when its own cache expires.
 */
@Injectable()
export class WrittenClasses {
  constructor(private readonly bus: MessageBus) {}

  /** Wraps the catalogue so that its changes are published. */
  watchingSchemas(catalogue: SchemaCatalogue): SchemaCatalogue {
    this.hear((className) => {
      if (className === SCHEMA_ROWS) catalogue.invalidate();
    });
    return new AnnouncingCatalogue(catalogue, () => this.tell(SCHEMA_ROWS));
  }

  /** Wraps the directory so that its changes are published. */
  watchingRows(directory: Directory): Directory {
    this.hear((className) => {
      if (REMEMBERED.has(className)) directory.forgetClass(className);
    });
    return {
      forgetClass: (className) => {
        directory.forgetClass(className);
        if (REMEMBERED.has(className)) this.tell(className);
      },
    };
  }

  private hear(written: (className: string) => void): void {
    this.bus.messages(WRITTEN_TOPIC).subscribe(({ className }) => {
      if (typeof className === 'string') written(className);
    });
  }

  private tell(className: string): void {
    // The message is an optimisation: no result depends on its delivery.
    this.bus.publish(WRITTEN_TOPIC, { className }).catch(() => undefined);
  }
}

class AnnouncingCatalogue extends SchemaCatalogue {
  constructor(
    private readonly catalogue: SchemaCatalogue,
    private readonly announce: () => void,
  ) {
    super();
  }

  snapshot() {
    return this.catalogue.snapshot();
  }

  override snapshotNow() {
    return this.catalogue.snapshotNow();
  }

  override get renewals() {
    return this.catalogue.renewals;
  }

  indexesOf(schema: ClassSchema) {
    return this.catalogue.indexesOf(schema);
  }

  invalidate(): void {
    this.catalogue.invalidate();
    this.announce();
  }
}
