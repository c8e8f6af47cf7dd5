import { Inject, Injectable, Logger } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { createHash } from 'node:crypto';
import { toAuditedAgent, toAuditedRefusal, AuditSink, resultCost } from '#audit';
import {
  type Agent,
  CONFIGURATION_CHANGED,
  CurrentAgents,
  cutText,
  refusals,
  Refused,
  type McpRequest,
  type RequestTransport,
  Unauthorized,
  refuse,
} from '#core';
import type { GovernedClass } from '#data';
import { spendCall } from '#dispatcher';
import { ALWAYS_KEEP, hasInternalSegment, Policies, PolicyCache, takeRoot } from '#policy';
import {
  type TextColumn,
  compileCanaries,
  type ExportOrder,
  type ExportLineWriter,
  lineWriter,
  ToolRunner,
} from '#tools';
import { type ExportTicket, ExportTicketStore } from './export-tickets.js';
import { ExportWalk, type WalkedRow, type WalkStart } from './export-walk.js';

/** One reading of a whole export or of a part of it. */
export interface ExportReading {
  readonly agent: Agent;
  readonly className: string;
  readonly correlationId?: string | undefined;
  readonly httpRequestId?: string | undefined;
  readonly rows: number;
  readonly bytes: number;
  readonly milliseconds: number;
  /** Whether the reading ended by itself and was not aborted. */
  readonly ended: boolean;
  readonly error?: unknown;
  /** The operator's phrase that was found in the data. */
  readonly phrase?: string | undefined;
}

/** Records every reading; an aborted one with the rows and bytes that had been sent by then. */
@Injectable()
export class ExportJournal {
  private readonly logger = new Logger(ExportJournal.name);

  constructor(
    private readonly audit: AuditSink,
    @Inject(Policies) private readonly policies: Pick<Policies, 'of'>,
  ) {}

  /** Null when a reading can be recorded, else the seconds until it may be tried again. */
  admit(): number | null {
    return this.audit.admit();
  }

  /** Sent data cannot be revoked: the reader does not wait for its record. */
  record(reading: ExportReading): void {
    const { agent, className, correlationId, httpRequestId, rows, bytes, milliseconds } = reading;
    const { ended, error, phrase } = reading;
    const { version, switches } = this.policies.of(agent);
    const entry = {
      at: new Date().toISOString(),
      tool: 'export_read',
      args_keys: [],
      class_name: className,
      ...toAuditedAgent(agent),
      policy_version: version,
      ...(correlationId !== undefined && { correlation_id: correlationId }),
      ...(httpRequestId !== undefined && { request_id: httpRequestId }),
      success: ended,
      ...resultCost(bytes, switches.tokenCostPerMillionInput),
      rows,
      ...(phrase !== undefined && { prompt_injection_phrase: phrase }),
      duration_ms: Math.round(milliseconds * 100) / 100,
      ...(!ended && failure(error)),
    };
    try {
      this.audit.record(entry)?.catch(() => undefined);
    } catch (error) {
      this.logger.error(`the audit sink failed: ${String(error)}`);
    }
  }
}

function failure(error: unknown) {
  if (error instanceof Refused) return toAuditedRefusal(error.refusal, 'Refused');
  // The reader ended the reading.
  if (error === undefined) return toAuditedRefusal(refusals.cancelled(), 'Refused');
  const error_class = error instanceof Error ? error.constructor.name : typeof error;
  const cause = error instanceof Error ? error.message : 'not an error';
  if (error instanceof Unauthorized)
    return {
      error_code: 'access_denied' as const,
      error_class,
      gate: 'identity',
      cause: 'the session has ended',
    };
  return { error_code: 'internal_error' as const, error_class, cause };
}

/** The members of a call that the record of a reading contains. */
export type ExportReader = Pick<McpRequest, 'agent'> &
  Pick<RequestTransport, 'signal' | 'correlationId' | 'httpRequestId' | 'telemetry'>;

/**
 * The columns of a file: the requested ones, by the names that rows carry; else all columns of the class that the agent may
 * read now, in clear or in masked form, limited to the keys of the order.
 */
function chooseColumns({ columns, keys, include }: ExportOrder, known: GovernedClass): readonly TextColumn[] {
  const { names } = known.policy;
  if (columns.length > 0) return columns.map(({ header, path }) => ({ header, path: names.wirePath(path) }));
  const asked = [keys, include].flatMap((list): unknown[] => (Array.isArray(list) ? list : []));
  const wanted = new Set([
    ...ALWAYS_KEEP,
    ...asked.flatMap((name) => (typeof name === 'string' ? [takeRoot(names.wirePath(name))] : [])),
  ]);
  return [...known.fields, ...known.maskedColumns]
    .filter((field) => !hasInternalSegment(field) && (!Array.isArray(keys) || wanted.has(field)))
    .map((field) => ({ header: field, path: field }));
}

/**
 * Refuses a row with a column that the head of the table lacks: one that no schema declares, a sample missed, or that only some rows
 * show. Without a sign the file would lack its value.
 */
function assertWhole({ id, row }: WalkedRow, head: ReadonlySet<string>): void {
  const lacking = Object.keys(row).find((name) => !head.has(name) && !hasInternalSegment(name));
  if (lacking !== undefined)
    throw refuse.invalidQuery(
      `Row '${cutText(id, 64)}' has the column '${cutText(lacking, 64)}', which this table lacks: order it with columns, or as ndjson`,
    );
}

/** A row as it is written to the file. */
export interface ExportedLine {
  readonly id: string;
  readonly text: string;
}

export interface ExportFileOptions {
  readonly id: string;
  readonly ticket: ExportTicket;
  readonly reader: ExportReader;
  readonly columns: readonly TextColumn[];
  readonly writer: ExportLineWriter;
  /** Whether each row must fit into the columns, because nobody chose them. */
  readonly wholeRows: boolean;
  readonly tickets: Pick<ExportTicketStore, 'find' | 'hasExpired'>;
  readonly agents: Pick<CurrentAgents, 'isCurrent'>;
  readonly walk: ExportWalk;
  readonly journal: ExportJournal;
  /**
   * Searches for the operator's canaries. @returns the phrase that was found. @throws Refused where a match refuses the read
   */
  readonly inspect: (rows: readonly WalkedRow[]) => string | undefined;
}

/** An export as its owner reads it now. Creating one reads nothing. */
export class ExportFile {
  constructor(private readonly options: ExportFileOptions) {}

  get head(): string {
    return this.options.writer.head;
  }

  /** Differs when the file would have other columns: parts of different files must not be combined. */
  get columnsDigest(): string {
    return createHash('sha256').update(JSON.stringify(this.options.columns)).digest('base64url').slice(0, 16);
  }

  /**
   * The lines from a position on, a batch at a time. Once it has begun, every end of the reading is recorded.
   * @param whole whether a reader who leaves before the last line left too early
   * @throws Refused, Unauthorized
   */
  async *lines(start: WalkStart, whole: boolean): AsyncGenerator<readonly ExportedLine[], void, undefined> {
    const { reader, ticket, walk, writer, journal, inspect, columns, wholeRows } = this.options;
    const head = wholeRows && writer.head !== '' && new Set(columns.map(({ path }) => path));
    const began = performance.now();
    let rows = 0;
    let bytes = 0;
    let ended = false;
    let failure: unknown;
    let phrase: string | undefined;
    try {
      const walker = { ...reader, signal: reader.signal, proceed: () => this.stillPromised() };
      for await (const batch of walk.batches(ticket.order, walker, start)) {
        if (head) for (const one of batch) assertWhole(one, head);
        const lines = batch.map(({ id, row }) => ({ id, text: writer.line(row) }));
        phrase = inspect(batch) ?? phrase;
        rows += lines.length;
        const written = lines.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
        bytes += written;
        await walk.chargeBytes(reader, written);
        yield lines;
      }
      ended = true;
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      const { agent, correlationId, httpRequestId } = reader;
      const milliseconds = performance.now() - began;
      ended ||= !whole && failure === undefined;
      journal.record({
        agent,
        className: ticket.order.className,
        correlationId,
        httpRequestId,
        rows,
        bytes,
        milliseconds,
        ended,
        error: failure,
        phrase,
      });
    }
  }

  /**
   * A file that its owner revokes stops at once, and so does one whose reader a changed configuration would admit otherwise; one
   * that expires during a read is read to its end.
   */
  private async stillPromised(): Promise<void> {
    const { id, ticket, reader, tickets, agents } = this.options;
    if (!agents.isCurrent(reader.agent)) throw refuse.cancelled(CONFIGURATION_CHANGED);
    if (tickets.hasExpired(ticket) || (await tickets.find(id, reader.agent))) return;
    throw refuse.cancelled('revoked');
  }
}

/** The tool that creates exports: an agent that may not call it can read none. */
const TOOL = 'export_data';

/** Opens exports for their owners, under the gates of the tool that created them. */
@Injectable()
export class ExportFiles {
  private readonly canaries = new PolicyCache(({ switches: { promptInjectionCanaries: phrases } }) =>
    phrases.length > 0 ? compileCanaries(phrases) : null,
  );

  constructor(
    private readonly tickets: ExportTicketStore,
    private readonly walk: ExportWalk,
    private readonly journal: ExportJournal,
    @Inject(ToolRunner) private readonly runner: Pick<ToolRunner, 'list'>,
    @Inject(Policies) private readonly policies: Pick<Policies, 'of'>,
    @Inject(EventEmitter2) private readonly events: Pick<EventEmitter2, 'emit'>,
    @Inject(CurrentAgents) private readonly agents: Pick<CurrentAgents, 'isCurrent'>,
  ) {}

  permits({ agent }: Pick<ExportReader, 'agent'>): boolean {
    return this.runner.list({ agent }).some(({ name }) => name === TOOL);
  }

  /** @returns `undefined` when this agent has no such export. @throws Refused when it may not read it now */
  async open(
    id: string,
    reader: ExportReader,
  ): Promise<{ file: ExportFile; ticket: ExportTicket } | undefined> {
    const { tickets, walk, journal, policies, agents } = this;
    await spendCall(reader.agent);
    const retryAfter = journal.admit();
    if (retryAfter !== null) throw refuse.auditUnavailable(retryAfter);
    const ticket = await tickets.find(id, reader.agent);
    if (!ticket) return undefined;
    if (!this.permits(reader)) throw refuse.toolFiltered(TOOL);
    const { order } = ticket;
    const columns = chooseColumns(order, await walk.admit(order, reader));
    const { neutralizeFormulas } = policies.of(reader.agent).switches;
    const wholeRows = order.columns.length === 0;
    const writer = lineWriter(order.format, columns, { neutralizeFormulas, wholeRows });
    const inspect = (rows: readonly WalkedRow[]) => this.inspect(rows, reader, order.className);
    const given = { id, ticket, reader, columns, writer, wholeRows };
    return { file: new ExportFile({ ...given, tickets, agents, walk, journal, inspect }), ticket };
  }

  /** Canaries are phrases of JSON text, independent of the format of the file. */
  private inspect(rows: readonly WalkedRow[], reader: ExportReader, className: string): string | undefined {
    const policy = this.policies.of(reader.agent);
    const phrase = this.canaries.of(policy)?.(JSON.stringify(rows));
    if (phrase === undefined || phrase === null) return undefined;
    this.events.emit('parse.agent.prompt_injection_detected', {
      tool: 'export_read',
      phrase,
      agent_id: reader.agent.agentId,
      class_name: className,
    });
    if (policy.switches.canaryAction !== 'refuse') return phrase;
    throw refuse.securityBlocked('canary', `canary: ${phrase}`);
  }
}
