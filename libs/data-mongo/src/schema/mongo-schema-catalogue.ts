import { setTimeout } from 'node:timers/promises';
import type { Document } from 'mongodb';
import type { Observable } from 'rxjs';
import { ageClock } from '#core';
import { answerLeft, type CatalogueOptions, RenewedCatalogue, type SchemaCatalogue, StoreError } from '#data';
import {
  type ClassSchema,
  type IdKind,
  type IndexSchema,
  readTenantText,
  type SchemaSnapshot,
} from '#policy';
import { readBoundedRows } from '../storage/documents.js';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { asStoreOperation, isServerError } from '../errors.js';
import type { ClassStorage } from '../storage/class-storage.js';
import { createStorage, StoredSchemas } from '../storage/stored-classes.js';
import { readPlainClasses } from './plain-classes.js';
import { type CatalogueProblem, type OpenedCollections, PlainClassReader } from './plain-collections.js';
import { toClassSchema, toIndexSchemas, readIndexes, type StoredIndex } from './schema-row.js';
import { SharedClasses } from './shared-classes.js';
import { TenantCatalogue, TenantCatalogues } from './tenant-catalogue.js';
import { PARSE_ALONE, type PlainClassDeclaration, type StorageDeclarations } from './storage-declarations.js';

const READ_LIMITS = { maxTimeMS: 10_000, comment: 'parley schema catalogue' };

/** The declared classes of one database. */
interface Place {
  /** Absent: that of the service. */
  readonly database?: string;
  /** Of Parse. */
  readonly listed: StorageDeclarations['parse'];
  readonly plain: readonly PlainClassDeclaration[];
  /** Collections that no plain class may read where Parse stores them. */
  readonly guarded?: ReadonlySet<string>;
}

interface NamedPlace extends Place {
  readonly database: string;
  readonly listed: ReadonlySet<string>;
}

/** The classes of one database: those of Parse, and the collections of the others. */
interface DatabaseClasses {
  readonly rows: readonly ClassSchema[];
  readonly opened: OpenedCollections;
}

const listNames = ({ listed, plain }: NamedPlace): string[] => [
  ...listed,
  ...plain.map(({ className }) => className),
];

/** The ids of classes whose database is away. */
const listAwayIds = (away: readonly NamedPlace[]): ReadonlyMap<string, IdKind | null> =>
  new Map(
    away.flatMap(({ listed, plain }) => [
      ...[...listed].map((className) => [className, 'string'] as const),
      ...plain.map(({ className, id }) => [className, id] as const),
    ]),
  );

const listAway = (place: NamedPlace): CatalogueProblem[] =>
  listNames(place).map((className) => ({
    className,
    kind: 'database_away',
    text: `the database '${place.database}' cannot be read: see databases.${place.database}.uri, and whether its user may list and read collections`,
  }));

/** Milliseconds between two probes of a database that does not answer. */
const PROBE_INTERVAL = 1_000;

/** Milliseconds that classes wait for those of another database. */
const LONGEST_WAIT = 4_000;

/** The server's codes for a collection that does not exist, and for a view, which has no indexes. */
const WITHOUT_INDEXES = new Set<unknown>([26, 166]);

/** Rows per batch: without it a server returns the first hundred and needs a further round trip. */
const AT_ONCE = 10_000;

/** Bytes that are reserved for the classes before they arrive. */
const EXPECTED_BYTES = 1024 * 1024;

interface MongoCatalogueOptions extends CatalogueOptions {
  /** The classes of this database, asked for at every reading. Default: every class of Parse and no other. */
  readonly declared?: () => StorageDeclarations;
  /** Ids of classes that are read elsewhere, which columns may refer to. Default none. */
  readonly idsElsewhere?: () => ReadonlyMap<string, IdKind>;
  /** Where equal classes of other databases are held, too. Default: nowhere. */
  readonly shared?: SharedClasses;
}

/**
 * Classes and permissions as Parse Server stores them in `_SCHEMA`, read with one command, and the declared classes that Parse
 * does not store, read from their collections.
 */
export class MongoSchemaCatalogue extends RenewedCatalogue {
  /** Keyed by the class object of a snapshot, so that both are released together. */
  private indexes = new WeakMap<ClassSchema, Promise<readonly IndexSchema[]>>();

  private readonly declared: () => StorageDeclarations;
  private readonly plainClasses: PlainClassReader;
  private readonly tenants: TenantCatalogues;
  private readonly idsElsewhere: () => ReadonlyMap<string, IdKind>;
  private readonly shared: SharedClasses | undefined;
  /** Of the databases of tenants. */
  private readonly ofTenants = new SharedClasses();
  private found: readonly CatalogueProblem[] = [];
  /** Of the classes that were read last. */
  private ids: ReadonlyMap<string, IdKind> = new Map();
  /** Databases that did not answer, and are asked for until they do. */
  private readonly awaited = new Set<string>();
  private closed = false;

  constructor(
    private readonly connection: MongoConnection,
    options: MongoCatalogueOptions = {},
  ) {
    super(options);
    this.declared = options.declared ?? (() => PARSE_ALONE);
    this.idsElsewhere = options.idsElsewhere ?? (() => new Map());
    this.shared = options.shared;
    this.tenants = new TenantCatalogues((tenant) => this.openTenant(tenant, options));
    this.plainClasses = new PlainClassReader(connection, options.now ?? ageClock);
  }

  /** What is wrong with declared classes. @throws StoreError */
  async problems(): Promise<readonly CatalogueProblem[]> {
    await this.snapshot();
    return this.found;
  }

  override forget(): void {
    this.plainClasses.forget();
    this.tenants.forget();
    super.forget();
  }

  override get tenantChanges(): Observable<string> {
    return this.tenants.changes;
  }

  override forTenant(tenant: string | number | null | undefined): SchemaCatalogue {
    const isOne = ![...this.connection.further.values()].some(({ isPerTenant }) => isPerTenant);
    if (isOne) return this;
    const text = readTenantText(tenant);
    return text === null ? this : this.tenants.find(text);
  }

  /** Reads the databases of one tenant, and no other. */
  private openTenant(tenant: string, options: MongoCatalogueOptions): TenantCatalogue {
    const isOwn = (database: string | undefined) =>
      database !== undefined && this.connection.further.get(database)?.isPerTenant === true;
    const declared = (): StorageDeclarations => {
      const { plain, further } = this.declared();
      return {
        parse: new Set(),
        plain: plain.filter(({ database }) => isOwn(database)),
        further: new Map([...(further ?? [])].filter(([database]) => isOwn(database))),
      };
    };
    const connection = this.connection.withTenant(tenant);
    const own = new MongoSchemaCatalogue(connection, {
      ...options,
      declared,
      idsElsewhere: () => this.ids,
      shared: this.ofTenants,
    });
    return new TenantCatalogue(this, own, isOwn);
  }

  /** Asks no more for databases that are away. */
  close(): void {
    this.closed = true;
  }

  /** Schema rows may list fewer indexes and do not mark unique ones; the collection does. */
  listIndexes(schema: ClassSchema): Promise<readonly IndexSchema[]> {
    const known = this.indexes.get(schema);
    if (known) return known;
    const storage = createStorage(schema);
    const indexes = this.readIndexes(storage).then((listed) => toIndexSchemas(storage, listed));
    this.indexes.set(schema, indexes);
    // A failed read is repeated at the next call.
    indexes.catch(() => this.indexes.delete(schema));
    return indexes;
  }

  protected load(why: 'age' | 'names'): Promise<SchemaSnapshot> {
    return asStoreOperation(undefined, async () => {
      const { parse, plain } = this.declared();
      const all = this.listPlaces();
      const places = all.filter((place) => this.isReadHere(place));
      const elsewhere = new Set(all.flatMap((place) => listNames(place)));
      const own = { listed: parse, plain: plain.filter(({ database }) => database === undefined) };
      const [main, ...found] = await Promise.all([
        this.readDatabase(own, elsewhere, why === 'names'),
        ...places.map((place) => this.readFurther(place, why === 'names')),
      ]);
      const reached = [main, ...found.filter((one) => one !== null)];
      const rows = reached.flatMap((one) => one.rows);
      const away = places.filter((_, at) => !found[at]);
      const ofTenants = all.filter((place) => !places.includes(place));
      const { schemas, problems, ids } = readPlainClasses(
        reached.map((one) => one.opened),
        rows,
        new Map([...listAwayIds([...away, ...ofTenants]), ...this.idsElsewhere()]),
      );
      this.ids = ids;
      this.found = [...problems, ...away.flatMap(listAway)];
      const isPlain = own.plain.map(({ className }) => className);
      const closed = new Set([...isPlain, ...elsewhere, ...own.plain.map(({ collection }) => collection)]);
      const admits = (className: string) =>
        !closed.has(className) && (parse === 'all' || parse.has(className));
      const { shared } = this;
      // A class that is held for several snapshots has the indexes of none.
      if (shared) this.indexes = new WeakMap();
      return new StoredSchemas(
        shared ? [...rows, ...schemas].map((schema) => shared.share(schema)) : [...rows, ...schemas],
        admits,
        new Set(away.flatMap(listNames)),
        new Set(ofTenants.flatMap(listNames)),
      );
    });
  }

  /** The databases of tenants are read for a tenant. One whose name is that of no database has none. */
  private isReadHere({ database }: NamedPlace): boolean {
    try {
      return !this.connection.holding({ database }).isPerTenant;
    } catch {
      return false;
    }
  }

  /** @param elsewhere classes that are declared for another database */
  private async readDatabase(
    { database, listed, plain, guarded = new Set() }: Place,
    elsewhere: ReadonlySet<string>,
    forNames: boolean,
  ): Promise<DatabaseClasses> {
    const isPlain = new Set(plain.map(({ className }) => className));
    const wanted = listed === 'all' ? listed : new Set([...listed, ...guarded]);
    const stored = await this.parseClasses(wanted, database);
    const rows = stored.filter(
      ({ className }) =>
        !isPlain.has(className) && !elsewhere.has(className) && (listed === 'all' || listed.has(className)),
    );
    const names = new Set(rows.map(({ className }) => className));
    const protectedRows = new Set(
      stored.filter(({ className }) => guarded.has(className)).map(({ className }) => className),
    );
    const { maxTimeMS } = READ_LIMITS;
    const opened = await this.plainClasses.open(plain, names, {
      maxTimeMS,
      forNames,
      database,
      guarded: protectedRows,
    });
    return { rows, opened };
  }

  private listPlaces(): NamedPlace[] {
    const { plain, further } = this.declared();
    return [...(further ?? [])].map(([database, { parse, guarded }]) => ({
      database,
      listed: parse,
      plain: plain.filter((one) => one.database === database),
      ...(guarded && { guarded }),
    }));
  }

  /** Null: it cannot be reached, which is no matter of the others. They do not wait for it until it answers again. */
  private async readFurther(place: NamedPlace, forNames: boolean): Promise<DatabaseClasses | null> {
    const { database } = place;
    if (this.awaited.has(database)) return null;
    try {
      return await this.readPlace(place, forNames);
    } catch {
      this.awaited.add(database);
      void this.awaitDatabase(database);
      return null;
    }
  }

  /** Else the other classes would wait as long as a call for a server that may not be there, or that stalls. */
  private async readPlace(place: NamedPlace, forNames: boolean): Promise<DatabaseClasses> {
    await this.connection.holding(place).ping(PROBE_INTERVAL);
    const late = new AbortController();
    const tooLong = setTimeout(LONGEST_WAIT, undefined, { ref: false, signal: late.signal }).then(() => {
      throw new StoreError('unavailable');
    });
    try {
      return await Promise.race([this.readDatabase(place, new Set(), forNames), tooLong]);
    } finally {
      late.abort();
      tooLong.catch(() => undefined);
    }
  }

  /** Calls are told to read again only when there is something to read: one that answers and is not readable stays away. */
  private async awaitDatabase(database: string): Promise<void> {
    for (;;) {
      await setTimeout(PROBE_INTERVAL, undefined, { ref: false });
      const connection = this.connection.further.get(database);
      if (!connection) this.awaited.delete(database);
      if (!connection || connection.closed || this.closed) return;
      const place = this.listPlaces().find((one) => one.database === database);
      const isUp =
        !place ||
        (await this.readPlace(place, false).then(
          () => true,
          () => false,
        ));
      if (!isUp) continue;
      this.awaited.delete(database);
      super.forget();
      return;
    }
  }

  private async parseClasses(
    wanted: StorageDeclarations['parse'],
    database?: string,
  ): Promise<readonly ClassSchema[]> {
    if (wanted !== 'all' && wanted.size === 0) return [];
    const rows = this.connection
      .holding({ database })
      .collection('_SCHEMA')
      .find<Document>(wanted === 'all' ? {} : { _id: { $in: [...wanted] } }, {
        ...READ_LIMITS,
        batchSize: AT_ONCE,
        raw: true,
      });
    const signal = AbortSignal.timeout(READ_LIMITS.maxTimeMS);
    const operation = { maxTimeMS: READ_LIMITS.maxTimeMS, signal };
    const read = { operation, expected: EXPECTED_BYTES, left: answerLeft() };
    return readBoundedRows(rows, read, (row) => {
      const schema = toClassSchema(row, readIndexes(row));
      return database === undefined ? schema : { ...schema, database };
    });
  }

  private readIndexes(storage: ClassStorage): Promise<readonly StoredIndex[]> {
    return asStoreOperation(undefined, async () => {
      const indexes = await this.connection
        .holding(storage)
        .collection(storage.collection)
        .listIndexes(READ_LIMITS)
        .toArray()
        .catch((error: unknown) => {
          // A class without rows has no collection yet, and so no indexes.
          if (isServerError(error) && WITHOUT_INDEXES.has(error.code)) return [];
          throw error;
        });
      return indexes.map(({ name, key, unique, sparse, partialFilterExpression, collation, weights }) => ({
        name: String(name),
        key: { ...key, ...weights },
        unique: unique === true,
        sparse: sparse === true,
        partial: partialFilterExpression !== undefined,
        collated: collation !== undefined,
      }));
    });
  }
}
