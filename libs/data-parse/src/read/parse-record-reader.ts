import { isJsonObject } from '#core';
import {
  type AggregatedRows,
  type AggregateQuery,
  type AnswerLeft,
  answerLeft,
  type CountQuery,
  type PlannedQuery,
  type FindQuery,
  firstRows,
  type FirstRows,
  type IncludePlan,
  type OperationContext,
  type ParseRow,
  PlacedRows,
  type QueryPlan,
  RecordReader,
  type RelatedQuery,
  type SchemaCatalogue,
  type ShownQuery,
} from '#data';
import type { ParseAnswer, ParseConnection, ParseCredentials } from '../connection/parse-connection.js';
import {
  classPath,
  inexpressible,
  INVALID_QUERY,
  ParseServerError,
  parseServerError,
} from '../connection/parse-errors.js';
import { isPointer } from '../query/where-to-rest.js';
import { type RestForm, whereToRest } from '../query/where-to-rest.js';
import { type FoundRows, PAGE_SIZE, readCount, readPages, readResults } from './read-pages.js';
import { listRoots, rowFromRest } from './rest-row.js';

interface ReaderDependencies {
  readonly connection: ParseConnection;
  readonly credentials: ParseCredentials;
  readonly catalogue: SchemaCatalogue;
  /** Absent: pipelines cannot be run through Parse Server. */
  readonly pipelines?: StoredPipelines | undefined;
}

/** Bytes that are reserved for an answer before it arrives: of a pipeline, and of a row of a find. */
const EXPECTED_BYTES = { pipeline: 4 * 1024 * 1024, row: 2048 };

interface AnswerSize {
  readonly expected: number;
  readonly left: AnswerLeft;
}

/**
 * Reads rows through Parse Server with the master key or one session. With a session the server applies the row's rights,
 * class-level permissions and protected fields; `$readableBy` in a constraint is then omitted. One request per find and one
 * more per included pointer field. Pipelines and plans need the master key.
 */
export class ParseRecordReader extends RecordReader {
  constructor(private readonly parts: ReaderDependencies) {
    super();
  }

  async find(query: FindQuery, operation: OperationContext): Promise<ParseRow[]> {
    return (await this.findWithin(query, operation, answerLeft(query.maxBytes))).rows;
  }

  override async findShown(query: ShownQuery, operation: OperationContext): Promise<FirstRows> {
    const { rows, passed } = await this.findWithin(query, operation, answerLeft(query.maxBytes));
    return { ...firstRows(rows, query), passed };
  }

  /** Rows and what they include are one answer. */
  private async findWithin(
    query: FindQuery,
    operation: OperationContext,
    left: AnswerLeft,
  ): Promise<FoundRows> {
    const { className, where, keys, include = [], order, limit, skip } = query;
    if (!(limit > 0)) return { rows: [], passed: 0 };
    const wanted = keys && [...keys, ...include.map((plan) => plan.field)];
    const sent = await this.keysToSend(className, wanted);
    // Answers to subqueries, of which only the ids matter: their pages follow one another in the order of these.
    const isUnordered = !order?.length && limit > PAGE_SIZE;
    const asked = {
      where: whereToRest(where, this.restForm(isUnordered)),
      ...(isUnordered ? { order: 'objectId' } : orderToRest(query)),
      ...(sent && { keys: sent.join(',') }),
    };
    const expected = Math.min(limit * EXPECTED_BYTES.row, EXPECTED_BYTES.pipeline);
    const size = { expected, left };
    const found = await readPages({
      server: this.parts.connection,
      skip,
      limit,
      read: async (page) => readResults(await this.send(className, { ...asked, ...page }, operation, size)),
      count: () => this.count(query, operation),
    });
    const rows = found.rows.map((row) => rowFromRest(row, wanted));
    const findIncluded = async (further: FindQuery) => (await this.findWithin(further, operation, left)).rows;
    await includeRows(rows, include, findIncluded, left);
    return { rows, passed: found.passed };
  }

  async count(query: CountQuery, operation: OperationContext): Promise<number> {
    return readCount(await this.get(query, { count: 1, limit: 0 }, operation));
  }

  async aggregate(query: AggregateQuery, operation: OperationContext): Promise<AggregatedRows> {
    const { connection, credentials, pipelines } = this.parts;
    if (credentials.kind !== 'master') throw parseServerError('denied', 'pipelines need the master key');
    if (!pipelines) throw inexpressible('no storage form of pipelines is known');
    const { collection, stages, rows } = await pipelines.pipeline(query);
    const path = classPath(query.className, '/aggregate');
    const { comment } = operation;
    const pipeline = asWritten(collection, stages);
    const body = { _method: 'GET', pipeline, rawValues: true, rawFieldNames: true, comment };
    const answer = await connection
      .send({ credentials, method: 'POST', path, body, expected: EXPECTED_BYTES.pipeline }, operation)
      .catch((error: unknown) => {
        const isOfTimeZone = error instanceof ParseServerError && error.isOfTimeZone;
        throw isOfTimeZone ? parseServerError('unknown_time_zone', 'an unknown time zone') : error;
      });
    return { rows: rows(readResults(answer)), route: 'parse_server' };
  }

  async related(query: RelatedQuery, operation: OperationContext): Promise<string[]> {
    const { className, key, limit } = query;
    const field = (await this.parts.catalogue.snapshot()).get(className)?.fields.get(key);
    if (field?.type !== 'Relation' || field.targetClass === undefined) return [];
    const pointer = (of: string, objectId: string) => ({ __type: 'Pointer', className: of, objectId });
    const target = field.targetClass;
    const [asked, where] =
      'members' in query
        ? [className, { [key]: { $in: query.members.map((id) => pointer(target, id)) } }]
        : [target, { $relatedTo: { object: pointer(className, query.objectId), key } }];
    const size = { expected: EXPECTED_BYTES.row, left: answerLeft() };
    const ask = (query: object) => this.send(asked, { where, ...query }, operation, size);
    const { rows } = await readPages({
      server: this.parts.connection,
      limit,
      read: async (page) => readResults(await ask({ keys: 'objectId', order: 'objectId', ...page })),
      count: async () => readCount(await ask({ count: 1, limit: 0 })),
    });
    return rows.map((row) => String(row['objectId']));
  }

  async explain(query: PlannedQuery, operation: OperationContext): Promise<QueryPlan> {
    const { results } = await this.requestPlan(query, operation);
    const answer: unknown = Array.isArray(results) ? results[0] : results;
    const planner = isJsonObject(answer) ? answer['queryPlanner'] : undefined;
    const plan = isJsonObject(planner) ? planner['winningPlan'] : undefined;
    if (!isJsonObject(plan)) return {};
    return isJsonObject(plan['queryPlan']) ? plan['queryPlan'] : plan;
  }

  /** A setting of Parse Server decides who may request plans: by default only the master key. */
  private async requestPlan(query: PlannedQuery, operation: OperationContext): Promise<ParseAnswer> {
    try {
      return await this.get(query, { explain: true, limit: 1, ...orderToRest(query) }, operation);
    } catch (error) {
      const asSession = this.parts.credentials.kind === 'session';
      if (asSession && error instanceof ParseServerError && error.parseCode === INVALID_QUERY)
        throw parseServerError('denied', 'plans are not explained to sessions');
      throw error;
    }
  }

  private get(
    { className, where }: CountQuery,
    options: Readonly<Record<string, unknown>>,
    operation: OperationContext,
  ): Promise<ParseAnswer> {
    const query = { where: whereToRest(where, this.restForm('count' in options)), ...options };
    return this.send(className, query, operation);
  }

  private async send(
    className: string,
    query: Readonly<Record<string, unknown>>,
    operation: OperationContext,
    size?: AnswerSize,
  ): Promise<ParseAnswer> {
    const { connection, credentials } = this.parts;
    return connection.send(
      {
        credentials,
        method: 'GET',
        path: classPath(className),
        query: { ...query, comment: operation.comment },
        ...(size && { expected: size.expected }),
      },
      operation,
      size?.left,
    );
  }

  private restForm(filterOnly: boolean): RestForm {
    return {
      rightsAppliedBy: this.parts.credentials.kind === 'session' ? 'server' : 'constraint',
      filterOnly,
    };
  }

  /**
   * Parse Server stops protecting columns of later rows when `keys` meets a rule per row, so for such classes whole rows are
   * requested and projected here.
   */
  private async keysToSend(
    className: string,
    keys: readonly string[] | undefined,
  ): Promise<readonly string[] | undefined> {
    if (!keys || this.parts.credentials.kind === 'master') return keys && listRoots(keys);
    const permissions = (await this.parts.catalogue.snapshot()).get(className)?.classLevelPermissions;
    const lists = permissions?.['protectedFields'];
    const perRow =
      isJsonObject(lists) && Object.keys(lists).some((entity) => entity.startsWith('userField:'));
    return perRow ? undefined : listRoots(keys);
  }
}

function orderToRest({ order = [] }: Pick<FindQuery, 'order'>): { readonly order?: string } {
  if (order.length === 0) return {};
  return { order: order.map(({ field, descending }) => (descending ? `-${field}` : field)).join(',') };
}

/**
 * Parse Server rebuilds `$group`, `$match`, `$project` and `$geoNear` at the top of a pipeline: nulls and dates below `$group`
 * become `{}`, patterns and ids become objects, an output called `objectId` is refused. It leaves alone what stands inside
 * another stage, so the pipeline is sent there, behind an input without rows.
 */
function asWritten(collection: string, pipeline: StoredPipeline['stages']): StoredPipeline['stages'] {
  return [{ $match: { _id: { $in: [] } } }, { $unionWith: { coll: collection, pipeline } }];
}

/** Ids in one request. */
const BATCH_SIZE = 500;

/**
 * Replaces pointers with their included rows: one further find per plan, under the target's own limits. Parse Server's own
 * `include` is never used, because it does not apply these limits.
 */
async function includeRows(
  rows: readonly ParseRow[],
  plans: readonly IncludePlan[],
  find: (query: FindQuery) => Promise<ParseRow[]>,
  left: AnswerLeft,
): Promise<void> {
  for (const plan of plans) {
    const ids = [...new Set(rows.flatMap((row) => idsIn(row[plan.field], plan)))];
    const found = new PlacedRows(left, 'Parse Server');
    for (let from = 0; from < ids.length; from += BATCH_SIZE) {
      for (const row of await find(createBatch(plan, ids.slice(from, from + BATCH_SIZE))))
        found.add(String(row['objectId']), { __type: 'Object', className: plan.targetClass, ...row });
    }
    const resolve = (value: unknown): unknown =>
      isPointer(value) && value.className === plan.targetClass
        ? (found.place(value.objectId) ?? value)
        : value;
    for (const row of rows) {
      const value = row[plan.field];
      if (value !== undefined) row[plan.field] = Array.isArray(value) ? value.map(resolve) : resolve(value);
    }
  }
}

function createBatch(
  { targetClass: className, where, keys, include }: IncludePlan,
  ids: string[],
): FindQuery {
  const wanted = { objectId: ids.length === 1 ? ids[0] : { $in: ids } };
  return {
    className,
    where: Object.keys(where).length === 0 ? wanted : { $and: [wanted, where] },
    ...(keys && { keys }),
    include,
    limit: ids.length,
  };
}

function idsIn(value: unknown, plan: IncludePlan): string[] {
  const members: unknown[] = Array.isArray(value) ? value : [value];
  return members
    .filter(isPointer)
    .filter((pointer) => pointer.className === plan.targetClass)
    .map((pointer) => pointer.objectId);
}

/** A pipeline over stored columns, in extended JSON, with the way back from its documents to rows. */
interface StoredPipeline {
  /** The collection of its input. */
  readonly collection: string;
  readonly stages: readonly Readonly<Record<string, unknown>>[];
  rows(documents: readonly unknown[]): ParseRow[];
}

/**
 * Converts governed pipelines to Parse's storage form. Parse Server runs pipelines over stored columns, so the adapter of the
 * storage provides the conversion.
 */
interface StoredPipelines {
  /** @throws StoreError for stages and operands that cannot be translated */
  pipeline(query: AggregateQuery): Promise<StoredPipeline>;
}
