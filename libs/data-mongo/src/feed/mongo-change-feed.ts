import { setTimeout as delay } from 'node:timers/promises';
import { ChangeStream, type ChangeStreamDocument, type ResumeToken } from 'mongodb';
import { BehaviorSubject, filter, firstValueFrom, Observable, Subject } from 'rxjs';
import { ChangeFeed, type RowChange, type SchemaCatalogue, StoreError } from '#data';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { toStoreError } from '../errors.js';
import type { ClassStorage } from '../storage/class-storage.js';
import { StoredClasses } from '../storage/stored-classes.js';

/** Milliseconds after which the server is queried again: it may have become a replica set. */
const PROBE_INTERVAL_MS = 30_000;

/** Milliseconds that an answer may take. */
const TIMEOUT_MS = 2_000;

/** Whether the server has change streams: replica sets and sharded clusters have them, a standalone server does not. */
class ChangeStreamSupport {
  private supported: boolean | null = null;
  private probedAt = -Infinity;
  private probing: Promise<void> | null = null;

  constructor(private readonly connection: MongoConnection) {}

  /** The last answer; without one, null. Starts a new query in the background when the answer is old. */
  get known(): boolean | null {
    if (performance.now() - this.probedAt > PROBE_INTERVAL_MS) void this.probe();
    return this.supported;
  }

  /** Never rejects: a server that cannot be reached leaves the last answer unchanged. */
  probe(): Promise<void> {
    this.probing ??= this.readHello().finally(() => (this.probing = null));
    return this.probing;
  }

  private async readHello(): Promise<void> {
    this.probedAt = performance.now();
    try {
      const hello = await this.connection.ask({ hello: 1 }, AbortSignal.timeout(TIMEOUT_MS));
      this.supported = typeof hello['setName'] === 'string' || hello['msg'] === 'isdbgrid';
    } catch {
      // The next call repeats the query.
      this.probedAt = -Infinity;
    }
  }
}

const KINDS: Readonly<Record<string, RowChange['kind']>> = {
  insert: 'create',
  update: 'update',
  replace: 'update',
  delete: 'delete',
};

const WATCHED_OPERATIONS = Object.keys(KINDS);

/** A change event in Parse form, for one of the classes that its collection stores; null when it does not concern one row. */
function toRowChange(event: ChangeStreamDocument, storage: ClassStorage): RowChange | null {
  const kind = KINDS[event.operationType];
  if (!kind || !('documentKey' in event)) return null;
  const document = 'fullDocument' in event ? event.fullDocument : undefined;
  return {
    className: storage.className,
    objectId: storage.idFromStorage(event.documentKey?._id),
    kind,
    row: document ? storage.toRow(document) : null,
  };
}

/** A class that is watched, of one tenant where each has a database of its own. */
interface WatchedClass {
  readonly className: string;
  readonly tenant: string | null;
  readonly subject: Subject<RowChange>;
}

export interface ChangeFeedOptions {
  /** Consecutive failed attempts to open the stream before the feed counts as lost. Default 10. */
  readonly maxAttempts?: number;
  /** Milliseconds before the second attempt; doubles up to 5 000. Default 100. */
  readonly firstDelay?: number;
}

const LONGEST_DELAY = 5000;

/** The token belongs to a database that was dropped. */
const INVALID_TOKEN = 260;

/** The oplog no longer contains the changes since the last token: the missed changes cannot be reported. */
const HISTORY_LOST = new Set([280, 286]);

/**
 * Row changes from one change stream over the whole database, or the databases of all tenants, for all classes and watchers. It
 * resumes where it stopped after the watched classes change and after transient errors. It needs a replica set.
 */
export class MongoChangeFeed extends ChangeFeed {
  private readonly watched = new Map<string, WatchedClass>();
  private stream: ChangeStream | null = null;
  private token: ResumeToken;
  private running = false;
  private readonly opened = new BehaviorSubject<boolean | StoreError>(false);
  private readonly support: ChangeStreamSupport;

  constructor(
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
    private readonly options: ChangeFeedOptions = {},
  ) {
    super();
    this.support = new ChangeStreamSupport(connection);
  }

  get available(): boolean | null {
    return this.support.known;
  }

  /** Queries whether the server has change streams. Never rejects. */
  probe(): Promise<void> {
    return this.support.probe();
  }

  async waitForListening(): Promise<void> {
    const outcome = await firstValueFrom(this.opened.pipe(filter((state) => state !== false)));
    if (outcome instanceof StoreError) throw outcome;
  }

  changes(className: string, tenant: string | null = null): Observable<RowChange> {
    return new Observable((subscriber) => {
      const key = JSON.stringify([className, tenant]);
      const { subject } = this.watch(key, className, tenant);
      const subscription = subject.subscribe(subscriber);
      return () => {
        subscription.unsubscribe();
        if (!subject.observed) this.unwatch(key, subject);
      };
    });
  }

  private watch(key: string, className: string, tenant: string | null): WatchedClass {
    const known = this.watched.get(key);
    if (known) return known;
    const made = { className, tenant, subject: new Subject<RowChange>() };
    this.watched.set(key, made);
    this.reopen();
    return made;
  }

  private unwatch(key: string, subject: Subject<RowChange>): void {
    if (this.watched.get(key)?.subject !== subject) return;
    this.watched.delete(key);
    // Events of a class without watchers are dropped; the stream is closed only when no class is watched.
    if (this.watched.size === 0) this.reopen();
  }

  /** Ends the current stream; the loop opens the next one for the classes that are then watched, if any. */
  private reopen(): void {
    if (!this.running) {
      this.running = true;
      void this.run().finally(() => {
        this.running = false;
        this.token = undefined;
        if (this.watched.size > 0) this.reopen();
      });
    }
    const { stream } = this;
    this.stream = null;
    this.opened.next(false);
    // A failed close still closes the cursor: the loop sees the end of the stream.
    stream?.close().catch(() => undefined);
  }

  private async run(): Promise<void> {
    for (let failures = 0; this.watched.size > 0;) {
      let stream: ChangeStream | null = null;
      try {
        // The wait also lets classes that are subscribed at the same time share one stream.
        const storages = await this.findStorages();
        if (this.watched.size === 0) return;
        stream = this.open(storages);
        for (let event = await this.readNext(stream); event; event = await this.readNext(stream)) {
          await this.publish(event);
          failures = 0;
        }
      } catch (error) {
        if ((error as { code?: unknown }).code === INVALID_TOKEN) this.token = undefined;
        failures += 1;
        if (this.isLost(error, failures)) {
          this.fail(error);
          return;
        }
        await delay(Math.min((this.options.firstDelay ?? 100) * 2 ** (failures - 1), LONGEST_DELAY));
      } finally {
        if (this.stream === stream) this.stream = null;
        await stream?.close().catch(() => undefined);
      }
    }
  }

  /** How the watched classes are stored. The server reports no changes of views. */
  private async findStorages(): Promise<readonly ClassStorage[]> {
    const storages: ClassStorage[] = [];
    for (const [key, { className, tenant, subject }] of this.watched) {
      const storage = await this.findStorage(className, tenant);
      if (storage?.watchable !== false) {
        if (storage) storages.push(storage);
        continue;
      }
      this.watched.delete(key);
      subject.error(
        new StoreError('unsupported', { advice: `the database reports no changes of ${className}` }),
      );
      if (this.watched.size === 0) this.opened.next(new StoreError('unsupported'));
    }
    return storages;
  }

  private async findStorage(className: string, tenant: string | null): Promise<ClassStorage | undefined> {
    return (await StoredClasses.read(this.catalogue, { tenant })).find(className);
  }

  /** Whose an event is `publish` decides: this only keeps most others away. */
  private open(storages: readonly ClassStorage[]): ChangeStream {
    const tenants = new Set([...this.watched.values()].map(({ tenant }) => tenant));
    const chosen = {
      operationType: { $in: WATCHED_OPERATIONS },
      'ns.db': { $in: [...tenants].map((tenant) => this.connection.forTenant(tenant).name) },
      'ns.coll': { $in: [...new Set(storages.map(({ collection }) => collection))] },
    };
    this.stream = this.connection.watch([{ $match: chosen }], {
      ...Object.assign({}, ...storages.map(({ bson }) => bson)),
      fullDocument: 'updateLookup',
      comment: 'parley change feed',
      ...(this.token !== undefined && { resumeAfter: this.token }),
    });
    const { stream } = this;
    // The driver does not report otherwise that the cursor exists: the first batch carries a token, with or without events.
    stream.once(ChangeStream.RESUME_TOKEN_CHANGED, () => {
      if (this.stream === stream) this.opened.next(true);
    });
    return stream;
  }

  /** The next event, or null when the stream was closed in order to be reopened. */
  private async readNext(stream: ChangeStream) {
    try {
      return await stream.next();
    } catch (error) {
      // Everything up to this token was published; the driver advances it even without events.
      this.token = stream.resumeToken ?? this.token;
      if (this.stream !== stream) return null;
      throw error;
    }
  }

  private async publish(event: Awaited<ReturnType<ChangeStream['next']>>): Promise<void> {
    const { db, coll } = 'ns' in event && 'coll' in event.ns ? event.ns : {};
    for (const { className, tenant, subject } of this.watched.values()) {
      if (this.connection.forTenant(tenant).name !== db) continue;
      const storage = await this.findStorage(className, tenant);
      const change = storage && storage.collection === coll ? toRowChange(event, storage) : null;
      if (change) subject.next(change);
    }
    this.token = event._id;
  }

  private isLost(error: unknown, failures: number): boolean {
    const { code } = toStoreError(error);
    const number = (error as { code?: unknown }).code;
    return (
      this.connection.closed ||
      failures >= (this.options.maxAttempts ?? 10) ||
      code === 'invalid_query' ||
      code === 'unsupported' ||
      HISTORY_LOST.has(Number(number))
    );
  }

  private fail(error: unknown): void {
    const { code } = toStoreError(error);
    // A server without change streams rejects the stage; no caller's query is involved.
    const storeError = new StoreError(code === 'invalid_query' ? 'unsupported' : code, { cause: error });
    const subjects = [...this.watched.values()].map(({ subject }) => subject);
    this.watched.clear();
    this.opened.next(storeError);
    for (const subject of subjects) subject.error(storeError);
  }
}
