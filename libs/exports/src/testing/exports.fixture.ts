import {
  Agent,
  type AgentDefinitionOptions,
  compileAgentDefinition,
  type Identity,
  McpRequest,
  toRequest,
} from '#core';
import { type AuditRecord, AuditSink } from '#audit';
import { ProcessBudgetStore, ProcessVersionedStore, steadyClock } from '#state';
import {
  ClassSchemas,
  type FindQuery,
  GovernedRecordsSource,
  type ParseRow,
  PrincipalDirectory,
  PrincipalResolver,
  RecordReader,
  SchemaCatalogue,
  type SessionOwner,
} from '#data';
import { DataBudgets, processSecret, ResultLimit, type StateKeys, type ResourceCall } from '#dispatcher';
import { AgentScopes, compilePolicy, Policies, type PolicyConfig } from '#policy';
import type { EmbeddedResource, ExportOrder, ToolDefinition } from '#tools';
import { ADDRESS_BYTES, ExportDownloads, ExportResources } from '../export-deliveries.js';
import { ExportFiles, ExportJournal } from '../export-files.js';
import { DEFAULT_EXPORTS, type ExportSettings, ExportTicketStore } from '../export-tickets.js';
import { ExportWalk } from '../export-walk.js';

const rejectUse = (): never => {
  throw new Error('an export only finds');
};

/** Rows in memory; it supports only the constraints that a walk adds. */
class WalkedReader extends RecordReader {
  readonly queries: FindQuery[] = [];
  /** Runs before each find. */
  before: () => void = () => undefined;

  constructor(public rows: readonly ParseRow[]) {
    super();
  }

  override count = rejectUse;
  override aggregate = rejectUse;
  override related = rejectUse;
  override explain = rejectUse;

  async find(query: FindQuery): Promise<ParseRow[]> {
    this.queries.push(query);
    this.before();
    const after = /"\$gt":"([^"]*)"/.exec(JSON.stringify(query.where))?.[1] ?? '';
    const { keys } = query;
    return this.rows
      .filter((row) => String(row['objectId']) > after)
      .slice(0, query.limit)
      .map((row) =>
        keys ? Object.fromEntries(Object.entries(row).filter(([field]) => keys.includes(field))) : { ...row },
      );
  }
}

class Songs extends SchemaCatalogue {
  private readonly known = new ClassSchemas([
    {
      className: 'Song',
      fields: new Map([
        ['objectId', { type: 'String' }],
        ['title', { type: 'String' }],
        ['secret', { type: 'String' }],
        ['ACL', { type: 'ACL' }],
      ]),
      indexes: [],
      classLevelPermissions: null,
    },
  ]);
  snapshot = () => Promise.resolve(this.known);
  listIndexes = () => Promise.resolve([]);
  invalidate = () => undefined;
}

/** Sessions that a test can end. */
class Sessions extends PrincipalDirectory {
  readonly open = new Set<string>();
  ownerOfSession = (token: string): Promise<SessionOwner | null> =>
    Promise.resolve(this.open.has(token) ? { userId: 'ann', expiresAt: null } : null);
  findUser(): Promise<null> {
    return Promise.resolve(null);
  }

  rolesOfUser = () => Promise.resolve([]);
  rolesOfRole = (name: string) => Promise.resolve([name]);
}

class KeptAudit extends AuditSink {
  readonly entries: AuditRecord[] = [];
  record(entry: AuditRecord): void {
    this.entries.push(entry);
  }
}

export const SECRET = 'never-in-any-byte';

export function songs(count: number, title = (index: number) => `Song ${index}`): ParseRow[] {
  return Array.from({ length: count }, (_, index) => ({
    objectId: `s${String(index).padStart(6, '0')}`,
    title: title(index),
    secret: SECRET,
    ACL: { '*': { read: true } },
  }));
}

export function agentOf(
  principal = 'ann',
  options: AgentDefinitionOptions = {},
  identity?: Identity,
  name = 'reader',
): Agent {
  return new Agent({
    definition: compileAgentDefinition(name, { rateLimit: 1_000_000, ...options }),
    principal,
    ...(identity && { identity }),
  });
}

export interface ExportsUnderTestOptions {
  readonly settings?: Partial<ExportSettings>;
  /** Of a part that is read as a resource. */
  readonly partBytes?: number;
  readonly policy?: Partial<PolicyConfig>;
  /** State that replicas share. */
  readonly store?: ProcessVersionedStore;
  readonly keys?: StateKeys;
}

/** The export services over the real governed data access, with rows in memory. */
export function exportsUnderTest(rows: readonly ParseRow[], options: ExportsUnderTestOptions = {}) {
  const settings = { ...DEFAULT_EXPORTS, ...options.settings };
  const limit = new ResultLimit((options.partBytes ?? 4_194_304) + ADDRESS_BYTES);
  const policies = new Policies(
    compilePolicy({ classes: { Song: { fields: ['title'] } }, ...options.policy }).policy,
  );
  const reader = new WalkedReader(rows);
  const sessions = new Sessions();
  const audit = new KeptAudit();
  const tickets = new ExportTicketStore(
    { clock: steadyClock, exports: options.store ?? new ProcessVersionedStore() },
    settings,
    {
      downloads: '/exports',
    },
  );
  const canaries: string[] = [];
  const returning = new Set<Agent>();
  const records = new GovernedRecordsSource(
    new AgentScopes(policies),
    reader,
    new Songs(),
    new PrincipalResolver(sessions),
  );
  const tool = { name: 'export_data' } as ToolDefinition;
  const files = new ExportFiles(
    tickets,
    new ExportWalk(
      records,
      settings,
      new DataBudgets({ budgets: new ProcessBudgetStore() }, { of: () => ({ tenantBudget: null }) }),
    ),
    new ExportJournal(audit, policies),
    { list: (caller) => (toRequest(caller).agent.definition.tools.permits(tool.name) ? [tool] : []) },
    policies,
    { emit: (_event: unknown, { phrase }: { phrase: string }) => canaries.push(phrase) > 0 },
    { isCurrent: (agent) => !returning.has(agent) },
  );
  const resources = new ExportResources(files, tickets, options.keys ?? processSecret(), limit);
  const downloads = new ExportDownloads(files, tickets);
  return { reader, sessions, audit, tickets, canaries, returning, resources, downloads, records };
}

export type ExportsUnderTest = ReturnType<typeof exportsUnderTest>;

export const createOrder = (changes: Partial<ExportOrder> = {}): ExportOrder => ({
  className: 'Song',
  format: 'csv',
  columns: [{ header: 'title', path: 'title' }],
  limit: null,
  ...changes,
});

/** The id of a promised export. */
export async function promise(
  { tickets }: ExportsUnderTest,
  agent: Agent,
  order = createOrder(),
): Promise<string> {
  return (await tickets.promise(order, { agent })).uri.slice('export://'.length);
}

export async function download(
  { downloads }: ExportsUnderTest,
  id: string,
  agent: Agent,
  signal = new AbortController().signal,
): Promise<string[]> {
  const opened = await downloads.open(id, { agent, signal });
  if (!opened) throw new Error('no such export');
  const pieces: string[] = [];
  for await (const piece of opened.pieces) pieces.push(piece);
  return pieces;
}

export function callOf(records: ExportsUnderTest['records'], agent: Agent): ResourceCall {
  const request = new McpRequest(agent);
  return Object.assign(request, { records: records.for(request) });
}

/** Every part of an export as a client would read it, one after the other. */
export async function readParts(
  { resources, records }: ExportsUnderTest,
  id: string,
  agent: Agent,
): Promise<string[]> {
  const call = callOf(records, agent);
  const parts: string[] = [];
  for (let uri: string | undefined = `export://${id}`; uri !== undefined;) {
    const contents: readonly EmbeddedResource[] | undefined = await resources.read(uri, call);
    const [part, next] = contents ?? [];
    if (!part || !('text' in part)) throw new Error('no such part');
    parts.push(part.text);
    uri = next?.uri;
  }
  return parts;
}
