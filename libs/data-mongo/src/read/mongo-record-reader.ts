import { setOwn } from '#core';
import { Injectable } from '@nestjs/common';
import type { Document } from 'mongodb';
import {
  type AggregatedRows,
  type AggregateQuery,
  type AnswerLeft,
  answerLeft,
  type CountQuery,
  type PlannedQuery,
  type FindQuery,
  type FirstRows,
  type IncludePlan,
  type OperationContext,
  type ParseRow,
  type QueryPlan,
  RecordReader,
  type RelatedQuery,
  type ShownQuery,
  SchemaCatalogue,
} from '#data';
import { SIMPLE_COLLATION } from '../connection/collation.js';
import { type DocumentBatches, driverSignal, openRead } from '../connection/document-reads.js';
import { MongoConnection } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';
import { NumberForms } from '../query/exact-numbers.js';
import { aggregateRow, pipelineToStorage } from '../query/pipeline-to-storage.js';
import { classWhereToQuery } from '../query/where-to-query.js';
import { isPlainObject } from '#policy';
import { type ClassStorage, isPointer } from '../storage/class-storage.js';
import { unifyIds } from '../storage/mixed-references.js';
import { readBoundedAnswer, readBoundedRows, readOne, toRows } from '../storage/documents.js';
import { StoredClasses } from '../storage/stored-classes.js';
import { type NeedsBatch, resolveBatched, toIncludedRow } from './includes.js';

/** Rows a pipeline returns in its first batch, 16 MB permitting; more take further round trips. */
const AGGREGATE_BATCH = 5000;

/** Bytes that are reserved for an answer before it arrives: of a pipeline, of a row of a find, of a pair of a relation. */
const EXPECTED_BYTES = { pipeline: 4 * 1024 * 1024, row: 2048, link: 128 };

/**
 * Reads Parse rows from MongoDB (5.0 or newer), one command per call. Included pointers are joined inside that command;
 * pointers in arrays, to classes of another database, and all pointers of a search by distance, need one further find per
 * include.
 */
@Injectable()
export class MongoRecordReader extends RecordReader {
  constructor(
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
  ) {
    super();
  }

  find(query: FindQuery, operation: OperationContext): Promise<ParseRow[]> {
    return asStoreOperation(operation, () => this.findWithin(query, operation, answerLeft(query.maxBytes)));
  }

  /** Documents behind the first ones are counted, and never become rows. */
  override findShown(query: ShownQuery, operation: OperationContext): Promise<FirstRows> {
    // Included rows are found for all rows together.
    if (!(query.limit > 0) || (query.include ?? []).length > 0) return super.findShown(query, operation);
    return asStoreOperation(operation, async () => {
      const classes = await StoredClasses.read(this.catalogue, operation);
      const storage = classes.storage(query.className);
      const { bson } = classes;
      const read = { operation, expected: estimateBytes(query), left: answerLeft(query.maxBytes), bson };
      const found = this.findAlone(query, storage, operation);
      return readBoundedAnswer(found, read, async (documents) => ({
        count: documents.length,
        rows: await toRows(documents.slice(0, query.atMost), rowReader(query, storage, classes), bson),
      }));
    });
  }

  /** Rows and what they include are one answer. */
  private async findWithin(
    query: FindQuery,
    operation: OperationContext,
    left: AnswerLeft,
  ): Promise<ParseRow[]> {
    const classes = await StoredClasses.read(this.catalogue, operation);
    const storage = classes.storage(query.className);
    if (!(query.limit > 0)) return [];
    const include = query.include ?? [];
    const joined =
      include.some((plan) => isJoinable(plan, storage, classes)) && !searchesByDistance(query.where);
    const found = joined
      ? this.findJoined(query, storage, classes, operation)
      : this.findAlone(query, storage, operation);
    const read = { operation, expected: estimateBytes(query), left, bson: classes.bson };
    const rows = await readBoundedRows(found, read, rowReader(query, storage, classes));
    const needsBatch: NeedsBatch = (plan, className) =>
      !joined || !isJoinable(plan, classes.storage(className), classes);
    const find = (further: FindQuery) => this.findWithin(further, operation, left);
    await resolveBatched(rows, query.className, include, needsBatch, find, left);
    return rows;
  }

  private findAlone(query: FindQuery, storage: ClassStorage, operation: OperationContext): DocumentBatches {
    const read = {
      collection: storage.collection,
      filter: classWhereToQuery(query.where, storage),
      projection:
        (query.include ?? []).length > 0
          ? requestProjection(query, storage)
          : storage.buildProjection(query.keys),
      sort: query.order && toSort(query.order, storage),
      skip: query.skip,
      limit: query.limit,
    };
    return openRead(this.connection.holding(storage, operation.tenant), read, operation);
  }

  private findJoined(
    query: FindQuery,
    storage: ClassStorage,
    classes: StoredClasses,
    operation: OperationContext,
  ): DocumentBatches {
    const pipeline: Document[] = [{ $match: classWhereToQuery(query.where, storage) }];
    if (query.order && query.order.length > 0) pipeline.push({ $sort: toSort(query.order, storage) });
    if (query.skip) pipeline.push({ $skip: query.skip });
    pipeline.push({ $limit: query.limit }, ...rowStages(query, storage, classes));
    return this.openPipeline(storage, pipeline, query.limit + 1, operation);
  }

  count(query: CountQuery, operation: OperationContext): Promise<number> {
    return asStoreOperation(operation, async () => {
      const storage = (await StoredClasses.read(this.catalogue, operation)).storage(query.className);
      const filter = classWhereToQuery(query.where, storage, true);
      const pipeline = [{ $match: filter }, { $group: { _id: 1, n: { $sum: 1 } } }];
      const read = { collection: storage.collection, pipeline };
      const counted = await readOne(this.connection.holding(storage, operation.tenant), read, operation);
      return counted ? Number(counted['n']) : 0;
    });
  }

  aggregate(query: AggregateQuery, operation: OperationContext): Promise<AggregatedRows> {
    return asStoreOperation(operation, async () => {
      const schemas = await this.catalogue.forTenant(operation.tenant).snapshot();
      const { stages, scope } = pipelineToStorage(query.pipeline, query.className, schemas, {
        rewriteLookups: query.rewriteLookups ?? true,
      });
      const classes = StoredClasses.of(schemas);
      const found = this.openPipeline(classes.storage(query.className), stages, AGGREGATE_BATCH, operation);
      const read = { operation, expected: EXPECTED_BYTES.pipeline, left: answerLeft(), bson: classes.bson };
      const forms = scope.form.pointersAreIds ? new NumberForms() : null;
      const rows = await readBoundedRows(found, read, (document) => {
        const row = aggregateRow(document, scope);
        return forms ? forms.note(document, row, scope) : row;
      });
      forms?.unify();
      return { rows, route: 'mongo_direct' };
    });
  }

  related(query: RelatedQuery, operation: OperationContext): Promise<string[]> {
    const { className, key, limit } = query;
    const [filter, wanted] =
      'members' in query
        ? [{ relatedId: { $in: query.members } }, 'owningId']
        : [{ owningId: query.objectId }, 'relatedId'];
    return asStoreOperation(operation, async () => {
      const storage = (await StoredClasses.read(this.catalogue, operation)).storage(className);
      const collection = storage.relationCollection(key);
      if (collection === undefined) return [];
      const links = openRead(
        this.connection.holding(storage, operation.tenant),
        {
          collection,
          filter,
          projection: { _id: 0, [wanted]: 1 },
          limit,
        },
        operation,
      );
      const read = {
        operation,
        expected: Math.min(limit * EXPECTED_BYTES.link, EXPECTED_BYTES.pipeline),
        left: answerLeft(),
      };
      return readBoundedRows(links, read, (link) => String(link[wanted]));
    });
  }

  explain(query: PlannedQuery, operation: OperationContext): Promise<QueryPlan> {
    return asStoreOperation(operation, async () => {
      const storage = (await StoredClasses.read(this.catalogue, operation)).storage(query.className);
      const { maxTimeMS, comment } = operation;
      const find = {
        find: storage.collection,
        filter: classWhereToQuery(query.where, storage),
        ...(query.order && { sort: toSort(query.order, storage) }),
        ...SIMPLE_COLLATION,
        comment,
      };
      const answer = await this.connection
        .holding(storage, operation.tenant)
        .db.command(
          { explain: find, verbosity: 'queryPlanner', maxTimeMS, comment },
          { signal: driverSignal(operation) },
        );
      return findWinningPlan(answer);
    });
  }

  private openPipeline(
    storage: ClassStorage,
    pipeline: readonly Document[],
    batchSize: number,
    operation: OperationContext,
  ): DocumentBatches {
    const read = { collection: storage.collection, pipeline, batchSize };
    return openRead(this.connection.holding(storage, operation.tenant), read, operation);
  }
}

const estimateBytes = ({ limit }: FindQuery): number =>
  Math.min(limit * EXPECTED_BYTES.row, EXPECTED_BYTES.pipeline);

function toSort(order: NonNullable<FindQuery['order']>, storage: ClassStorage): Document {
  const sort: Document = {};
  for (const { field, descending } of order) setOwn(sort, storage.path(field), descending ? -1 : 1);
  return sort;
}

/** Such a search sorts by distance, which only a plain find can do. */
function searchesByDistance(where: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(where).some(([key, value]) => {
    if (key === '$and' && Array.isArray(value)) return value.filter(isPlainObject).some(searchesByDistance);
    return isPlainObject(value) && ('$nearSphere' in value || '$near' in value);
  });
}

function findWinningPlan(answer: Document): QueryPlan {
  const plan: unknown = answer['queryPlanner']?.winningPlan;
  if (!isPlainObject(plan)) return {};
  return isPlainObject(plan['queryPlan']) ? plan['queryPlan'] : plan;
}

/** The fields of an answer, by their roots; undefined: all. */
export function listWantedFields(keys: readonly string[] | undefined): ReadonlySet<string> | undefined {
  return keys && new Set(keys.map((key) => key.split('.', 1)[0] as string));
}

/** The field that holds a joined row beside its pointer. A leading underscore keeps it out of every answer. */
const JOINED_PREFIX = '_i_';

interface RowRequest {
  readonly keys?: readonly string[];
  readonly include?: readonly IncludePlan[];
}

/** A pointer column can be joined; pointers inside arrays, and to another database, are fetched with separate finds. */
function isJoinable(plan: IncludePlan, storage: ClassStorage, classes: StoredClasses): boolean {
  return (
    storage.field(plan.field)?.type === 'Pointer' &&
    classes.storage(plan.targetClass).database === storage.database
  );
}

/** Keys of a request with the pointers it includes. */
function listKeys({ keys, include }: RowRequest): readonly string[] | undefined {
  return keys && [...keys, ...(include ?? []).map((plan) => plan.field)];
}

function requestProjection(request: RowRequest, storage: ClassStorage): Document | undefined {
  return storage.projection(listKeys(request));
}

/** The stages after the selection of rows: their columns, then one join per included pointer, nested as deep as the plan. */
function rowStages(request: RowRequest, storage: ClassStorage, classes: StoredClasses): Document[] {
  const projection = requestProjection(request, storage);
  const joins = (request.include ?? [])
    .filter((plan) => isJoinable(plan, storage, classes))
    .map((plan) => buildJoin(plan, storage, classes));
  return [...(projection ? [{ $project: projection }] : []), ...joins];
}

function buildJoin(plan: IncludePlan, storage: ClassStorage, classes: StoredClasses): Document {
  const target = classes.storage(plan.targetClass);
  const pointer = `$${storage.column(plan.field)}`;
  const admitted = classWhereToQuery(plan.where, target, true);
  const identified = { $expr: { $eq: ['$_id', '$$id'] } };
  const conditions = Object.keys(admitted).length > 0 ? { $and: [identified, admitted] } : identified;
  return {
    $lookup: {
      from: target.collection,
      let: {
        id: storage.form.pointersAreIds
          ? (unifyIds(pointer, storage.field(plan.field)) ?? pointer)
          : target.idOfReference(pointer),
      },
      pipeline: [{ $match: conditions }, ...rowStages(plan, target, classes)],
      as: JOINED_PREFIX + plan.field,
    },
  };
}

/**
 * Reads rows with their joined rows in place of pointers. A pointer whose row does not match the constraint stays unchanged.
 */
function rowReader(
  request: RowRequest,
  storage: ClassStorage,
  classes: StoredClasses,
): (document: Document) => ParseRow {
  const wanted = listWantedFields(listKeys(request));
  const joins = (request.include ?? []).map((plan) => ({
    plan,
    read: rowReader(plan, classes.storage(plan.targetClass), classes),
  }));
  return (document) => {
    const row = storage.toRow(document, wanted);
    for (const { plan, read } of joins) {
      const joined: unknown = document[JOINED_PREFIX + plan.field];
      const found: unknown = Array.isArray(joined) ? joined[0] : undefined;
      const pointer = row[plan.field];
      if (!isPlainObject(found) || !isPointer(pointer) || pointer.className !== plan.targetClass) continue;
      setOwn(row, plan.field, toIncludedRow(read(found), plan));
    }
    return row;
  };
}
