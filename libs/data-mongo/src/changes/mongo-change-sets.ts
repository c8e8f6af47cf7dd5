import type { Collection, Document, Filter } from 'mongodb';
import { type Owner, toOwnerKey } from '#core';
import {
  type ChangeSet,
  type ChangeSetQuery,
  ChangeSets,
  type SetChange,
  type StoredEntry,
  type RowTransaction,
} from '#data';
import type { DriverDocument, MongoConnection } from '../connection/mongo-connection.js';
import { asStoreOperation, toStoreError } from '../errors.js';
import { MongoTransaction, type RowPlace } from './mongo-row-transactions.js';
import { type SettledSet, SettledSets } from './settled-sets.js';

/** No class can have this name: names of classes contain no dot, and no declared class may be stored here. */
export const CHANGES_COLLECTION = 'parley.changes';

/** Milliseconds that one command may take. */
const MAX_TIME_MS = 10_000;

/** The owner as one text. */
const OWNER = 'ownerKey';

/** Of a set that takes writes: no other set of this owner can have it. */
const OPEN_OF = 'openOf';

/** Of a set that a transaction of another database is about to change: nothing else changes it. */
const SETTLING = 'settling';

/** Milliseconds after which no transaction is open any more. */
const SETTLED_WITHIN = 5 * 60_000;

/** The keys that its entries have, or have had. */
const KEYS = 'keys';

/** When the database deletes the set: a date, as its index asks for. */
const DELETED_AT = 'deletedAt';

/** Sets as documents, each with its entries: a set and what is sealed in it fit into one. A TTL index deletes them. */
export class MongoChangeSets extends ChangeSets {
  private prepared: Promise<unknown> | null = null;
  private readonly settled: SettledSets;

  /**
   * @param connection to the first database, with those beside it: their transactions change sets, too
   * @param now the clock of the replicas
   */
  constructor(
    private readonly connection: MongoConnection,
    private readonly now: () => number = Date.now,
  ) {
    super();
    this.settled = new SettledSets(connection, (settled) => this.carry(settled));
  }

  async create(set: ChangeSet, within?: RowTransaction): Promise<boolean> {
    if (isElsewhere(within)) {
      await asStoreOperation(undefined, () => this.settled.put(within, { set }));
      return true;
    }
    const [document, options] = [toDocument(set), optionsFor(within)];
    if (within instanceof MongoTransaction) {
      // It also stores a row, whose id may be the one that is taken: the transaction ends with either.
      await this.write((collection) => within.insert(collection, document, options));
      return true;
    }
    try {
      await this.write(async (collection) => collection.insertOne(document, options));
      return true;
    } catch (error) {
      if (toStoreError(error).code === 'duplicate') return false;
      throw error;
    }
  }

  find(id: string): Promise<ChangeSet | null> {
    return this.findOne({ _id: id });
  }

  findOpen(owner: Owner): Promise<ChangeSet | null> {
    return this.findOne({ [OPEN_OF]: toOwnerKey(owner) });
  }

  list(query: ChangeSetQuery): Promise<readonly ChangeSet[]> {
    return asStoreOperation(undefined, async () => {
      const found = await this.collection
        .aggregate<DriverDocument>(
          [
            { $match: { $and: [toFilter(query), this.isLive()] } },
            { $sort: { openedAt: -1, _id: -1 } },
            { $limit: query.limit },
            { $unset: 'sealed' },
          ],
          { maxTimeMS: MAX_TIME_MS },
        )
        .toArray();
      return found.map(toSet);
    });
  }

  async change(id: string, revision: number, change: SetChange, within?: RowTransaction): Promise<boolean> {
    if (isElsewhere(within)) return this.changeElsewhere(id, revision, change, within);
    const { matchedCount } = await this.write((collection) =>
      collection.updateOne({ _id: id, revision, [SETTLING]: null }, toUpdate(change), optionsFor(within)),
    );
    return matchedCount === 1;
  }

  /** Nobody changes the set until it is known what became of the transaction. */
  private async changeElsewhere(
    id: string,
    revision: number,
    change: SetChange,
    within: MongoTransaction,
  ): Promise<boolean> {
    const { run, place, failed } = within;
    const own = { [`${SETTLING}.run`]: run };
    const settling = { run, ...place, until: new Date(this.now() + SETTLED_WITHIN) };
    const { matchedCount } = await this.write((collection) =>
      collection.updateOne(
        { _id: id, revision, $or: [{ [SETTLING]: null }, own] },
        { $set: { [SETTLING]: settling } },
        MAJORITY_WRITE,
      ),
    );
    if (matchedCount !== 1) return false;
    failed.push(() => this.release(id, run));
    await asStoreOperation(undefined, () => this.settled.put(within, { id, revision, change }));
    return true;
  }

  private async release(id: string, run: unknown): Promise<void> {
    await this.collection.updateOne({ _id: id, [`${SETTLING}.run`]: run }, { $unset: { [SETTLING]: '' } });
  }

  /** What a transaction of another database made of a set. The same may be carried twice. */
  private async carry(settled: SettledSet): Promise<void> {
    if ('set' in settled) {
      await this.create(settled.set);
      return;
    }
    const { id, revision, change } = settled;
    const { $unset, ...update } = toUpdate(change);
    await this.write((collection) =>
      collection.updateOne(
        { _id: id, revision },
        { ...update, $unset: { ...$unset, [SETTLING]: '' } },
        MAJORITY_WRITE,
      ),
    );
  }

  /**
   * The set once it is known what became of the transaction that is about to change it. While its database is away, or the transaction
   * may be open, the set is as it is.
   */
  private async settle(document: DriverDocument): Promise<DriverDocument | null> {
    const { run, until, database, tenant } = document[SETTLING] as RowPlace & { run: string; until: Date };
    try {
      const isCarried = await this.settled.carryLeft(document._id, { database, tenant });
      if (!isCarried && until.getTime() > this.now()) return document;
      await this.release(document._id, run);
      return await this.collection.findOne({ _id: document._id }, { maxTimeMS: MAX_TIME_MS });
    } catch {
      return document;
    }
  }

  private findOne(filter: Filter<DriverDocument>): Promise<ChangeSet | null> {
    return asStoreOperation(undefined, async () => {
      const found = await this.collection.findOne(
        { $and: [filter, this.isLive()] },
        { maxTimeMS: MAX_TIME_MS },
      );
      const now = found?.[SETTLING] ? await this.settle(found) : found;
      return now && toSet(now);
    });
  }

  /** The database deletes what is over once a minute. */
  private isLive(): Document {
    return { [DELETED_AT]: { $gt: new Date(this.now()) } };
  }

  private write<T>(work: (collection: Collection<DriverDocument>) => Promise<T>): Promise<T> {
    return asStoreOperation(undefined, async () => {
      await this.prepare();
      return work(this.collection);
    });
  }

  /** Before the first set is stored. A transaction cannot make an index. */
  private prepare(): Promise<unknown> {
    this.prepared ??= this.collection
      .createIndexes([
        { key: { [OPEN_OF]: 1 }, unique: true, sparse: true },
        { key: { [OWNER]: 1, openedAt: -1 } },
        { key: { [OWNER]: 1, [KEYS]: 1 } },
        { key: { state: 1, appliedAt: -1 } },
        { key: { state: 1, expiresAt: 1 } },
        { key: { [DELETED_AT]: 1 }, expireAfterSeconds: 0 },
      ])
      .catch((error: unknown) => {
        this.prepared = null;
        throw error;
      });
    return this.prepared;
  }

  private get collection(): Collection<DriverDocument> {
    return this.connection.collection(CHANGES_COLLECTION);
  }
}

/** A set that was written is known to survive a fail-over. */
const MAJORITY_WRITE = { writeConcern: { w: 'majority' }, ignoreUndefined: true } as const;

const isElsewhere = (within: RowTransaction | undefined): within is MongoTransaction =>
  within instanceof MongoTransaction && within.place.database !== undefined;

const optionsFor = (within: RowTransaction | undefined) =>
  within instanceof MongoTransaction ? { session: within.session, ignoreUndefined: true } : MAJORITY_WRITE;

/** A set as it is stored: under the names of its members, with what is searched for, and its entries by their numbers. */
function toDocument({ id, entries, deletedAt, ...set }: ChangeSet): DriverDocument {
  const ownerKey = toOwnerKey(set.owner);
  return {
    _id: id,
    ...set,
    [OWNER]: ownerKey,
    ...(set.state === 'open' && { [OPEN_OF]: ownerKey }),
    [KEYS]: listKeys(entries),
    [DELETED_AT]: new Date(deletedAt),
    entries: Object.fromEntries(entries.map(({ entry, sealed: _sealed, ...stored }) => [entry, stored])),
    sealed: Object.fromEntries(entries.flatMap(({ entry, sealed }) => (sealed ? [[entry, sealed]] : []))),
  };
}

const listKeys = (entries: readonly StoredEntry[]): string[] => [
  ...new Set(entries.flatMap(({ keys = {} }) => Object.keys(keys))),
];

function toUpdate({ put = [], remove = [], deletedAt, ...members }: SetChange): Document {
  const set: Document = { ...members, ...(deletedAt !== undefined && { [DELETED_AT]: new Date(deletedAt) }) };
  const unset: Document = {};
  const keys = listKeys(put);
  for (const { entry, sealed, ...stored } of put) {
    set[`entries.${entry}`] = stored;
    if (sealed === undefined) unset[`sealed.${entry}`] = '';
    else set[`sealed.${entry}`] = sealed;
  }
  for (const entry of remove) for (const part of ['entries', 'sealed']) unset[`${part}.${entry}`] = '';
  // Only a set that takes writes keeps the others of its owner away.
  if (members.state !== undefined && members.state !== 'open') unset[OPEN_OF] = '';
  return {
    $inc: { revision: 1 },
    ...(keys.length > 0 && { $addToSet: { [KEYS]: { $each: keys } } }),
    ...(Object.keys(set).length > 0 && { $set: set }),
    ...(Object.keys(unset).length > 0 && { $unset: unset }),
  };
}

type StoredSet = Omit<ChangeSet, 'id' | 'entries' | 'deletedAt'> & {
  readonly _id: string;
  readonly deletedAt: Date;
  readonly entries: Readonly<Record<string, Omit<StoredEntry, 'entry' | 'sealed'>>>;
  /** Absent in lists. */
  readonly sealed?: Readonly<Record<string, string>>;
};

function toSet(document: Document): ChangeSet {
  const { [OWNER]: _owner, [OPEN_OF]: _open, [KEYS]: _keys, [SETTLING]: _settling, ...stored } = document;
  const { _id: id, deletedAt, entries, sealed = {}, ...set } = stored as StoredSet;
  return {
    id,
    ...set,
    deletedAt: deletedAt.getTime(),
    entries: Object.entries(entries)
      .map(([entry, one]) => ({
        entry: Number(entry),
        ...one,
        ...(sealed[entry] !== undefined && { sealed: sealed[entry] }),
      }))
      .toSorted((one, other) => one.entry - other.entry),
  };
}

/** Names of the classes of a set's rows. */
const CLASS_NAMES = { $map: { input: { $objectToArray: '$entries' }, in: '$$this.v.className' } };

/** Names of the credentials by which a set's rows were written, by row. */
const KEY_NAMES = {
  $map: { input: { $objectToArray: '$entries' }, in: { $ifNull: ['$$this.v.keyNames', []] } },
};

/** Whether a set has a row that was written by the credential of this name; null: of which none is known. */
const isWrittenBy = (keyName: string | null): Document =>
  keyName === null
    ? { $in: [[], KEY_NAMES] }
    : { $anyElementTrue: [{ $map: { input: KEY_NAMES, in: { $in: [{ $literal: keyName }, '$$this'] } } }] };

function toFilter(query: ChangeSetQuery): Document {
  const { owner, states, agent, tenant, key, keyName, className, isUndone, since, until, expiredBy } = query;
  const all = [
    ...(className === undefined ? [] : [{ $in: [{ $literal: className }, CLASS_NAMES] }]),
    ...(keyName === undefined ? [] : [isWrittenBy(keyName)]),
  ];
  const time = { ...(since !== undefined && { $gte: since }), ...(until !== undefined && { $lt: until }) };
  return {
    ...(owner && { [OWNER]: toOwnerKey(owner) }),
    ...(states && { state: { $in: states } }),
    ...(agent !== undefined && { 'owner.agent': agent }),
    ...(tenant !== undefined && { 'owner.tenant': tenant }),
    ...(key !== undefined && { [KEYS]: key }),
    ...(all.length > 0 && { $expr: { $and: all } }),
    ...(isUndone !== undefined && { undoneBy: { $exists: isUndone } }),
    ...(Object.keys(time).length > 0 && { $or: [{ appliedAt: time }, { appliedAt: null, openedAt: time }] }),
    ...(expiredBy !== undefined && { expiresAt: { $lte: expiredBy } }),
  };
}
