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

/** Of a set that takes writes: no other set of this owner can have it. */
const OPEN_OF = 'open_of';

/** Of a set that a transaction of another database is about to change: nothing else changes it. */
const SETTLING = 'settling';

/** Milliseconds after which no transaction is open any more. */
const SETTLED_WITHIN = 5 * 60_000;

/** The keys that its entries have, or have had. */
const KEYS = 'keys';

/** When the database deletes the set. */
const DELETED_AT = 'deleted_at';

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
    try {
      await this.write(async (collection) => collection.insertOne(toDocument(set), optionsFor(within)));
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
            { $sort: { opened_at: -1, _id: -1 } },
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
        { key: { owner: 1, opened_at: -1 } },
        { key: { owner: 1, [KEYS]: 1 } },
        { key: { state: 1, applied_at: -1 } },
        { key: { state: 1, expires_at: 1 } },
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
const MAJORITY_WRITE = { writeConcern: { w: 'majority' } } as const;

const isElsewhere = (within: RowTransaction | undefined): within is MongoTransaction =>
  within instanceof MongoTransaction && within.place.database !== undefined;

const optionsFor = (within: RowTransaction | undefined) =>
  within instanceof MongoTransaction ? { session: within.session } : MAJORITY_WRITE;

/** Names of the document by members of a set, for those that a change may set. */
const CHANGED_MEMBERS = {
  state: 'state',
  title: 'title',
  reason: 'reason',
  approver: 'approver',
  undoneBy: 'undone_by',
  next: 'next',
} as const;

const TIME_MEMBERS = {
  expiresAt: 'expires_at',
  deletedAt: DELETED_AT,
  submittedAt: 'submitted_at',
  appliedAt: 'applied_at',
} as const;

const FIXED_MEMBERS = { kind: 'kind', revision: 'revision', undoes: 'undoes' } as const;

type Names = Readonly<Record<string, string>>;

const pick = (from: object, names: Names, convert: (value: unknown) => unknown = (value) => value) =>
  Object.fromEntries(
    Object.entries(names).flatMap(([member, name]) => {
      const value = (from as Record<string, unknown>)[member];
      return value === undefined ? [] : [[name, convert(value)]];
    }),
  );

const toTime = (value: unknown) => new Date(value as number);

function toDocument(set: ChangeSet): DriverDocument {
  const { id, owner, openedAt, entries } = set;
  return {
    _id: id,
    owner: toOwnerKey(owner),
    principal: owner.principal,
    agent: owner.agent,
    tenant: owner.tenant,
    ...(owner.tenants && { tenants: owner.tenants }),
    ...(owner.rights && { rights: owner.rights }),
    ...pick(set, CHANGED_MEMBERS),
    ...pick(set, FIXED_MEMBERS),
    ...pick(set, TIME_MEMBERS, toTime),
    opened_at: new Date(openedAt),
    [KEYS]: listKeys(entries),
    ...(set.state === 'open' && { [OPEN_OF]: toOwnerKey(owner) }),
    entries: Object.fromEntries(entries.map((entry) => [entry.entry, toEntry(entry)])),
    sealed: Object.fromEntries(entries.flatMap(({ entry, sealed }) => (sealed ? [[entry, sealed]] : []))),
  };
}

const listKeys = (entries: readonly StoredEntry[]): string[] => [
  ...new Set(entries.flatMap(({ keys = {} }) => Object.keys(keys))),
];

const toEntry = ({ operation, className, objectId, fields, keys }: StoredEntry): Document => ({
  operation,
  class_name: className,
  object_id: objectId,
  fields,
  ...(keys && { keys }),
});

function toUpdate({ put = [], remove = [], ...members }: SetChange): Document {
  const set: Document = { ...pick(members, CHANGED_MEMBERS), ...pick(members, TIME_MEMBERS, toTime) };
  const unset: Document = {};
  const keys = listKeys(put);
  for (const entry of put) {
    set[`entries.${entry.entry}`] = toEntry(entry);
    if (entry.sealed === undefined) unset[`sealed.${entry.entry}`] = '';
    else set[`sealed.${entry.entry}`] = entry.sealed;
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

function toSet(document: Document): ChangeSet {
  const { sealed = {} } = document;
  const back = (names: Names, convert: (value: unknown) => unknown = (value) => value) =>
    pick(
      document,
      Object.fromEntries(Object.entries(names).map(([member, name]) => [name, member])),
      convert,
    );
  const fromTime = (value: unknown) => (value as Date).getTime();
  const entries = Object.entries(document['entries'] as Record<string, Document>).map(
    ([number, { operation, class_name, object_id, fields, keys }]): StoredEntry => ({
      entry: Number(number),
      operation,
      className: class_name,
      objectId: object_id,
      fields,
      ...(keys && { keys }),
      ...(sealed[number] !== undefined && { sealed: sealed[number] as string }),
    }),
  );
  return {
    id: String(document['_id']),
    owner: {
      principal: document['principal'],
      tenant: document['tenant'],
      agent: document['agent'],
      ...(document['tenants'] && { tenants: document['tenants'] }),
      ...(document['rights'] && { rights: document['rights'] }),
    },
    openedAt: fromTime(document['opened_at']),
    ...back(CHANGED_MEMBERS),
    ...back(FIXED_MEMBERS),
    ...back(TIME_MEMBERS, fromTime),
    entries: entries.toSorted((one, other) => one.entry - other.entry),
  } as unknown as ChangeSet;
}

/** Names of the classes of a set's rows. */
const CLASS_NAMES = { $map: { input: { $objectToArray: '$entries' }, in: '$$this.v.class_name' } };

function toFilter(query: ChangeSetQuery): Document {
  const { owner, states, agent, tenant, key, className, isUndone, since, until, expiredBy } = query;
  const time = {
    ...(since !== undefined && { $gte: new Date(since) }),
    ...(until !== undefined && { $lt: new Date(until) }),
  };
  return {
    ...(owner && { owner: toOwnerKey(owner) }),
    ...(states && { state: { $in: states } }),
    ...(agent !== undefined && { agent }),
    ...(tenant !== undefined && { tenant }),
    ...(key !== undefined && { [KEYS]: key }),
    ...(className !== undefined && { $expr: { $in: [{ $literal: className }, CLASS_NAMES] } }),
    ...(isUndone !== undefined && { undone_by: { $exists: isUndone } }),
    ...(Object.keys(time).length > 0 && {
      $or: [{ applied_at: time }, { applied_at: null, opened_at: time }],
    }),
    ...(expiredBy !== undefined && { expires_at: { $lte: new Date(expiredBy) } }),
  };
}
