import type { Collection, Filter, MongoBulkWriteError } from 'mongodb';
import {
  AuditCollection,
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
  AuditStoreError,
  type ChainHead,
  readLimit,
  membersAsked,
  parseMoment,
  takePage,
  readCursor,
  type SealedRecord,
} from '#audit';
import { answerLeft } from '#data';
import { readBoundedRows } from '../storage/documents.js';
import { connectionProblem } from '../connection/connection-problem.js';
import { isDriverError } from '../errors.js';
import type { MongoConnection, DriverDocument } from '../connection/mongo-connection.js';

export interface MongoAuditOptions {
  readonly connection: MongoConnection;
  /** Default: the database of the connection. It must not be a database that agents read. */
  readonly database?: string;
  readonly collection: string;
  /** Milliseconds that a record is kept; null: for ever. */
  readonly lifetime: number | null;
  /** The connection is used for audit only and is closed with the collection. */
  readonly ownsConnection: boolean;
}

/** When a record may be removed. It is stored beside the record and is not part of the sealed data. */
const EXPIRES = 'expires_at';
const DUPLICATE_KEY = 11000;
/** Milliseconds that a search may take. */
const READ_TIME_MS = 30_000;
/** Bytes that are reserved for a record before it arrives. */
const EXPECTED_BYTES = 2048;

/** Audit records as documents. This class never changes or removes one; a TTL index of the database may. */
export class MongoAuditCollection extends AuditCollection {
  constructor(private readonly options: MongoAuditOptions) {
    super();
  }

  open(): Promise<ChainHead | null> {
    return this.explainFailure(() => this.prepare());
  }

  private async prepare(): Promise<ChainHead | null> {
    const { collection } = this;
    await collection.createIndexes([
      { key: { at: -1, chain: -1, seq: -1 } },
      { key: { tenant_id: 1, at: -1 } },
      { key: { agent_name: 1, at: -1 } },
      { key: { principal: 1, at: -1 } },
      { key: { key_name: 1, at: -1 }, partialFilterExpression: { key_name: { $exists: true } } },
      { key: { approver_key: 1, at: -1 }, partialFilterExpression: { approver_key: { $exists: true } } },
      { key: { correlation_id: 1 }, sparse: true },
      { key: { [EXPIRES]: 1 }, expireAfterSeconds: 0, sparse: true },
    ]);
    const [latest] = await collection.find().sort({ at: -1, chain: -1, seq: -1 }).limit(1).toArray();
    if (!latest) return null;
    const { chain, seq, hash } = latest as unknown as ChainHead;
    return { chain, seq, hash };
  }

  async insert(records: readonly SealedRecord[]): Promise<void> {
    const documents = records.map((record) => this.toDocument(record));
    const options = { ordered: false, ignoreUndefined: true, writeConcern: { w: 'majority' } } as const;
    await this.explainFailure(async () => {
      try {
        await this.collection.insertMany(documents, options);
      } catch (error) {
        if (!isOnlyDuplicates(error)) throw error;
      }
    });
  }

  async search(query: AuditQuery, left?: AbortSignal): Promise<AuditPage> {
    const limit = readLimit(query);
    const late = AbortSignal.timeout(READ_TIME_MS);
    const signal = left ? AbortSignal.any([left, late]) : late;
    const found = this.collection
      .find(toFilter(query), { raw: true, maxTimeMS: READ_TIME_MS, ...(left && { signal: left }) })
      .sort({ at: -1, chain: -1, seq: -1 })
      .limit(limit + 1);
    const operation = { maxTimeMS: READ_TIME_MS, signal };
    const read = { operation, expected: limit * EXPECTED_BYTES, left: answerLeft() };
    const records = await this.explainFailure(
      () => readBoundedRows(found, read, (record) => toRecord(record as DriverDocument)),
      left,
    );
    return takePage(records as unknown as AuditEntry[], limit);
  }

  async *all(type?: string): AsyncIterable<unknown> {
    const found = this.collection.find(type === undefined ? {} : { type }, { sort: { _id: 1 } });
    try {
      for (;;) {
        const document = await this.explainFailure(() => found.next());
        if (document === null) return;
        yield toRecord(document);
      }
    } finally {
      await found.close();
    }
  }

  async close(): Promise<void> {
    if (this.options.ownsConnection) await this.options.connection.close();
  }

  /** @param left of a caller who left: what ended because of it is no problem of the database */
  private async explainFailure<T>(work: () => Promise<T>, left?: AbortSignal): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const problem = left?.aborted ? null : connectionProblem(error);
      throw problem ? new AuditStoreError(problem.found, { cause: error }) : error;
    }
  }

  private get collection(): Collection<DriverDocument> {
    const { connection, database, collection } = this.options;
    return connection.collection(collection, database);
  }

  private toDocument(record: SealedRecord): DriverDocument {
    const { lifetime } = this.options;
    return {
      // Records are inserted in the order of their chain, each once.
      _id: `${record.chain}:${String(record.seq).padStart(15, '0')}`,
      ...record,
      ...(lifetime !== null && { [EXPIRES]: new Date(Date.parse(record.at) + lifetime) }),
    };
  }
}

function toRecord({ _id, [EXPIRES]: _expires, ...record }: DriverDocument): Record<string, unknown> {
  return record;
}

function isOnlyDuplicates(error: unknown): boolean {
  if (!isDriverError(error, 'MongoBulkWriteError')) return false;
  const errors = [(error as MongoBulkWriteError).writeErrors].flat();
  return errors.length > 0 && errors.every(({ code }) => code === DUPLICATE_KEY);
}

function toFilter(query: AuditQuery): Filter<DriverDocument> {
  const from = parseMoment(query.from, 'from');
  const to = parseMoment(query.to, 'to');
  const conditions: Filter<DriverDocument>[] = membersAsked(query).map(([names, value]) => {
    const equal = names.map((name) => ({ [name]: { $eq: value } }));
    return equal.length === 1 ? { ...equal[0] } : { $or: equal };
  });
  if (query.outcome !== undefined) conditions.push({ success: query.outcome === 'success' });
  if (from !== undefined) conditions.push({ at: { $gte: from } });
  if (to !== undefined) conditions.push({ at: { $lt: to } });
  if (query.tenant !== undefined) conditions.push({ tenant_id: { $in: tenantForms(query.tenant) } });
  if (query.cursor !== undefined) {
    const { at, chain, seq } = readCursor(query.cursor);
    conditions.push({
      $or: [{ at: { $lt: at } }, { at, chain: { $lt: chain } }, { at, chain, seq: { $lt: seq } }],
    });
  }
  return conditions.length > 0 ? { $and: conditions } : {};
}

function tenantForms(text: string): unknown[] {
  const number = Number(text);
  return String(number) === text ? [text, number] : [text];
}
