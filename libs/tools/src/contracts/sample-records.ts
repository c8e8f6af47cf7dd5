import { Agent, createAskingCall, compileAgentDefinition, type Tier, TIERS, McpRequest } from '#core';
import type {
  AggregateOptions,
  AggregateResult,
  Completions,
  CountedFacets,
  FindOptions,
  GovernedClass,
  GovernedRecords,
  GovernedSearch,
  VectorFilters,
  SimilaritySearch,
  NearestRequest,
  ParseRow,
  QueryPlan,
  RowPage,
  SearchHit,
  TextSearchRequest,
} from '#data';
import { type ClassPolicy, type ClassSchema, FieldNames, type FieldSchema } from '#policy';
import { GroupByDate } from '../aggregate/group-by-date.js';
import { Distinct, GroupBy } from '../aggregate/group-by.js';
import { toolDeclarations, toolsOf } from '../declaration/tool.decorator.js';
import { ExportStore, type ExportOrder, type OfferedExport } from '../export/export-files.js';
import { createReadingHandler } from '../registry/tool-registry.js';
import type { ToolCall, ToolSwitches } from '../tool.js';

/**
 * Rows for tests of result formats: no rules, no translation. It keeps the queries of a tool in `asked`, so that a test
 * sees the queries at the governed access. Other tests cover the rules.
 */
export class SampleRecords implements GovernedRecords {
  readonly asked: { method: string; className: unknown; options: unknown }[] = [];
  truncatedIncludeFields?: Readonly<Record<string, readonly string[]>>;
  autoLimited = false;
  plan: QueryPlan = { stage: 'COLLSCAN' };

  constructor(
    private readonly rows: readonly ParseRow[] = [],
    private readonly known: readonly GovernedClass[] = [],
  ) {}

  async find(className: unknown, options?: FindOptions): Promise<ParseRow[]> {
    return (await this.page(className, options)).rows;
  }

  async page(className: unknown, options: FindOptions = {}): Promise<RowPage> {
    this.note('page', className, options);
    const { skip = 0, limit = this.rows.length } = options;
    const more = this.rows.length > skip + limit;
    const found = this.rows.slice(skip, skip + limit);
    return {
      ...this.withNotes(found.slice(0, options.atMost)),
      count: found.length,
      ...(options.tellsMore && { more }),
    };
  }

  async count(className: unknown, options?: object): Promise<number> {
    this.note('count', className, options);
    return this.rows.length;
  }

  async get(className: unknown, objectId: unknown, options?: object): Promise<RowPage> {
    this.note('get', className, { objectId, ...options });
    return this.withNotes(this.rows.filter((row) => row['objectId'] === objectId));
  }

  async getMany(className: unknown, objectIds: readonly string[], options?: object): Promise<RowPage> {
    this.note('getMany', className, { objectIds, ...options });
    return this.withNotes(this.rows.filter((row) => objectIds.includes(row['objectId'] as string)).reverse());
  }

  async samples(className: unknown, limit: number): Promise<ParseRow[]> {
    this.note('samples', className, { limit });
    return this.rows.slice(0, limit);
  }

  async aggregate(
    className: unknown,
    pipeline: unknown,
    options?: AggregateOptions,
  ): Promise<AggregateResult> {
    this.note('aggregate', className, { pipeline, ...options });
    return { rows: [...this.rows], route: 'mongo_direct', autoLimited: this.autoLimited };
  }

  async checkAggregate(className: unknown, pipeline: unknown, options?: object): Promise<void> {
    this.note('checkAggregate', className, { pipeline, ...options });
  }

  async explain(className: unknown, options?: object): Promise<QueryPlan> {
    this.note('explain', className, { ...options });
    return this.plan;
  }

  async admit(className: unknown): Promise<GovernedClass> {
    return this.describe(className);
  }

  async classes(): Promise<readonly GovernedClass[]> {
    return this.known;
  }

  async describe(className: unknown): Promise<GovernedClass> {
    const found = this.known.find((known) => known.className === className);
    if (!found) throw new Error(`the sample has no class ${String(className)}`);
    return found;
  }

  async indexes(className: unknown) {
    return (await this.describe(className)).schema.indexes;
  }

  private note(method: string, className: unknown, options: unknown): void {
    this.asked.push({ method, className, options });
  }

  private withNotes(rows: readonly ParseRow[]): RowPage {
    const { truncatedIncludeFields } = this;
    return { rows: [...rows], ...(truncatedIncludeFields && { truncatedIncludeFields }) };
  }
}

/** A class with the standard fields and these. */
export function sampleClass(
  className: string,
  fields: Readonly<Record<string, FieldSchema>>,
  policy: Partial<ClassPolicy> = {},
  schema: Partial<ClassSchema> = {},
): GovernedClass {
  const all = new Map<string, FieldSchema>([
    ['objectId', { type: 'String' }],
    ['createdAt', { type: 'Date' }],
    ['updatedAt', { type: 'Date' }],
    ['ACL', { type: 'ACL' }],
    ...Object.entries(fields),
  ]);
  const readable = policy.fields ? new Set(['objectId', 'createdAt', 'updatedAt', ...policy.fields]) : null;
  return {
    className,
    fields: [...all.keys()].filter((name) => !readable || readable.has(name)),
    masks: new Map(),
    maskedColumns: [],
    reads: new Set(['find', 'count', 'get'] as const),
    scans: true,
    methodTiers: new Set(TIERS),
    schema: { className, fields: all, indexes: [], classLevelPermissions: null, ...schema },
    policy: {
      className,
      database: null,
      plain: null,
      hiding: 'no',
      visible: false,
      description: null,
      usage: null,
      fields: null,
      joinFields: null,
      largeFields: [],
      canonicalFilter: null,
      filters: null,
      tenantScope: null,
      allowCollscan: false,
      readHooks: null,
      searchable: null,
      searchIndex: 'default',
      masks: new Map(),
      properties: new Map(),
      aliases: new Map(),
      names: new FieldNames(policy.aliases, all),
      ...policy,
    },
  };
}

/** All switches off except these. */
export function switches(on: Partial<ToolSwitches> = {}): ToolSwitches {
  return {
    includeSourceProvenance: false,
    promptMarkerStrict: false,
    agentDebug: false,
    neutralizeFormulas: false,
    prettyText: false,
    ...on,
  };
}

export const QUIET = switches();

/** The call that the only tool of a provider receives. */
export function callOf(
  provider: object,
  records: GovernedRecords,
  permissions: Tier = 'readonly',
  search: GovernedSearch = new SampleSearch(),
): ToolCall {
  const [declaration] = toolDeclarations(Object.getPrototypeOf(provider) as object);
  if (!declaration) throw new Error('the provider declares no tool');
  const agent = new Agent({
    definition: compileAgentDefinition('sample', { permissions }),
    principal: 'sample',
  });
  return Object.assign(new McpRequest(agent), {
    tool: declaration.definition,
    records,
    search,
    switches: QUIET,
    spend: () => undefined,
    continueAsTask: () => undefined,
    belongsTo: () => undefined,
    ...createAskingCall(undefined),
  });
}

/** `count` rows in the form of a store, r0 first. */
export function sampleRows(count: number): ParseRow[] {
  return Array.from({ length: count }, (_, index) => ({
    objectId: `r${index}`,
    createdAt: '2024-01-01T00:00:00.000Z',
    updatedAt: '2024-01-02T00:00:00.000Z',
    title: `Row ${index}`,
    ACL: { '*': { read: true } },
  }));
}

type Answer<Method> = Method extends (...args: never[]) => infer Result ? Awaited<Result> : never;

/** Runs the only tool of a provider behind the checks of its argument class, like the registry. */
export async function runTool<Tool extends object, Name extends keyof Tool>(
  tool: Tool,
  _method: Name,
  args: object,
  call: ToolCall,
): Promise<Answer<Tool[Name]>> {
  const [registration] = toolsOf(tool);
  if (!registration) throw new Error('the provider declares no tool');
  return (await createReadingHandler(registration)({ ...args }, call)) as Answer<Tool[Name]>;
}

/** Search results for tests of result formats; other tests cover the rules. */
export class SampleSearch implements GovernedSearch {
  readonly asked: { method: string; request: unknown }[] = [];

  constructor(
    private readonly rows: readonly ParseRow[] = [],
    private readonly textFields: readonly string[] = ['title', 'body'],
  ) {}

  async text(_className: unknown, request: TextSearchRequest): Promise<SearchHit[]> {
    return this.answer('text', request);
  }

  async autocomplete(_className: unknown, request: unknown): Promise<Completions> {
    return { suggestions: ['Row 0'], hits: this.answer('autocomplete', request) };
  }

  async facets(_className: unknown, request: unknown): Promise<CountedFacets> {
    const facets = new Map([['state', [{ _id: 'live', count: 2 }]]]);
    return { total: this.rows.length, facets, hits: this.answer('facets', request) };
  }

  async likeness(className: unknown): Promise<SimilaritySearch> {
    return {
      className: String(className),
      field: 'vector',
      textFields: this.textFields,
      wireName: (field) => (field === 'createdAt' || field === 'objectId' ? 'vector' : field),
      check: (filters: VectorFilters) => void this.asked.push({ method: 'check', request: filters }),
      readVector: async () => [1, 0],
      nearest: async (request: NearestRequest) => ({
        hits: this.answer('nearest', request),
        mayLackRows: false,
      }),
    };
  }

  private answer(method: string, request: unknown): SearchHit[] {
    this.asked.push({ method, request });
    const texts = [{ value: 'Row', type: 'hit' as const }];
    return this.rows.map((row, index) => ({
      row,
      score: 0.87654 - index / 100,
      highlights: [{ path: 'title', texts }],
    }));
  }
}

/** Accepts every export order, and keeps the orders. */
export class SampleExportStore extends ExportStore {
  readonly maxRows = 5000;
  readonly orders: ExportOrder[] = [];

  promise(order: ExportOrder): Promise<OfferedExport> {
    this.orders.push(order);
    return Promise.resolve({
      uri: 'export://abc',
      path: '/exports/abc',
      fileName: 'Song.csv',
      mimeType: 'text/csv',
      expiresAt: '2030-01-01T00:00:00.000Z',
      maxRows: this.maxRows,
    });
  }
}

const FIELDS: Readonly<Record<string, FieldSchema>> = {
  genre: { type: 'String' },
  artist: { type: 'Pointer', targetClass: 'Artist' },
  plays: { type: 'Number' },
  tags: { type: 'Array' },
  fans: { type: 'Relation', targetClass: '_User' },
  releasedAt: { type: 'Date' },
};

export type Run = (args: object) => Promise<Record<string, unknown>>;

/** A tool over these rows of one class, and its recorded queries. */
function over<Tool extends object>(
  tool: Tool,
  method: keyof Tool,
  rows: readonly ParseRow[],
  policy: Partial<ClassPolicy> = {},
) {
  const records = new SampleRecords(rows, [sampleClass('Song', FIELDS, policy)]);
  const call = callOf(tool, records as GovernedRecords);
  const run: Run = async (args) => ({
    ...((await runTool(tool, method, { class_name: 'Song', ...args }, call)) as object),
  });
  return { records, run };
}

export const groupBy = (rows: readonly ParseRow[] = [], policy: Partial<ClassPolicy> = {}) =>
  over(new GroupBy(), 'group', rows, policy);
export const groupByDate = (rows: readonly ParseRow[] = [], policy: Partial<ClassPolicy> = {}) =>
  over(new GroupByDate(), 'group', rows, policy);
export const distinct = (rows: readonly ParseRow[] = []) => over(new Distinct(), 'distinct', rows);

export const withheld = { className: 'Label', __redacted: true };
/** The pipeline of the last query. */
export const stagesOf = (records: SampleRecords) =>
  (records.asked.at(-1)?.options as { pipeline: unknown } | undefined)?.pipeline;
