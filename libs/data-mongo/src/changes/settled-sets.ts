import type { Collection } from 'mongodb';
import type { ChangeSet, SetChange } from '#data';
import type { DriverDocument, MongoConnection } from '../connection/mongo-connection.js';
import type { MongoTransaction, RowPlace } from './mongo-row-transactions.js';

/** No class can have this name: names of classes contain no dot. */
export const SETTLED_COLLECTION = 'parley.settled';

/** What a transaction made of a set: it is new, or it changed. */
export type SettledSet =
  | { readonly set: ChangeSet }
  | { readonly id: string; readonly revision: number; readonly change: SetChange };

/** Milliseconds that one command may take. */
const MAX_TIME_MS = 10_000;

/** Milliseconds for which a change without a time of its own is kept. */
const UNTIMED_KEPT = 7 * 24 * 3_600_000;

/** Changes of sets that are carried at once when a database is used again. */
const MOST_LEFT = 1_000;

/**
 * Sets lie in the first database, and no transaction reaches two. The transaction of another one stores there what became of its sets;
 * that is carried to them once it is committed, and later where that fails or the process ends.
 */
export class SettledSets {
  /** By connection to the database. */
  private readonly prepared = new WeakMap<MongoConnection, Promise<unknown>>();

  /** @param carry applies one to the sets; it may be applied already */
  constructor(
    private readonly connection: MongoConnection,
    private readonly carry: (settled: SettledSet) => Promise<unknown>,
  ) {}

  /** Stores it in the transaction. */
  async put({ session, place, committed }: MongoTransaction, settled: SettledSet): Promise<void> {
    await this.prepare(place);
    const id = nameSet(settled);
    const deletedAt =
      'set' in settled ? settled.set.deletedAt : (settled.change.deletedAt ?? Date.now() + UNTIMED_KEPT);
    await this.collection(place).replaceOne(
      { _id: id },
      { settled: JSON.stringify(settled), deleted_at: new Date(deletedAt) },
      { upsert: true, session },
    );
    committed.push(() => this.carryOne(settled, place));
  }

  /** Carries what the database has of a set. @returns false where it has nothing */
  async carryLeft(id: string, place: RowPlace): Promise<boolean> {
    const found = await this.collection(place).findOne({ _id: id }, { maxTimeMS: MAX_TIME_MS });
    if (!found) return false;
    await this.carryOne(readSettled(found), place);
    return true;
  }

  private async carryOne(settled: SettledSet, place: RowPlace): Promise<void> {
    try {
      await this.carry(settled);
      await this.collection(place).deleteOne({ _id: nameSet(settled) });
    } catch (error) {
      this.prepared.delete(this.hold(place));
      throw error;
    }
  }

  /** Before the first set of the database; also what was left there is carried. */
  private prepare(place: RowPlace): Promise<unknown> {
    const held = this.hold(place);
    const known = this.prepared.get(held);
    if (known) return known;
    const preparing = this.makeReady(place);
    this.prepared.set(held, preparing);
    preparing.catch(() => this.prepared.delete(held));
    return preparing;
  }

  private async makeReady(place: RowPlace): Promise<void> {
    const collection = this.collection(place);
    await collection.createIndex({ deleted_at: 1 }, { expireAfterSeconds: 0 });
    const left = await collection.find({}, { maxTimeMS: MAX_TIME_MS, limit: MOST_LEFT }).toArray();
    for (const one of left) {
      const settled = readSettled(one);
      await this.carry(settled);
      await collection.deleteOne({ _id: nameSet(settled) });
    }
  }

  private hold(place: RowPlace): MongoConnection {
    return this.connection.holding(place, place.tenant);
  }

  private collection(place: RowPlace): Collection<DriverDocument> {
    return this.hold(place).collection(SETTLED_COLLECTION);
  }
}

const nameSet = (settled: SettledSet): string => ('set' in settled ? settled.set.id : settled.id);

const readSettled = (document: DriverDocument): SettledSet =>
  JSON.parse(String(document['settled'])) as SettledSet;
