import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Get, Inject, type PipeTransform, Query, Res } from '@nestjs/common';
import { IsIn, IsInt, IsOptional, IsString, MaxLength } from 'class-validator';
import { type AuditPage, type AuditQuery, AuditQueryError, AuditTrail, RecentAuditTrail } from '#audit';
import { cutText, MOMENT_RULE } from '#core';
import { Convert } from '#schema';
import { ClosedSignal, McpEdge, NotServed, sendJson, createValidationPipe } from '#streaming';
import { auditCsv, CSV_LIMITS } from '../audit-csv.js';
import { CurrentOperator, OperatorController, WithoutSharedState } from '../console.guards.js';
import { type Operator, OperatorNotes } from '../operator-gate.js';
import { sumUsage, USAGE_LIMITS, usageCsv } from '../usage.js';
import { readLimit } from './page-query.js';

const Filter = (): PropertyDecorator => (target, name) => {
  IsOptional()(target, name);
  MaxLength(500, { message: ({ property }) => `${property}: too long` })(target, name as string);
};

export class AuditSearchQuery {
  @Convert(readLimit)
  @IsInt()
  limit = readLimit(undefined);

  @Filter() from?: string;
  @Filter() to?: string;
  @Filter() type?: string;
  @Filter() agent?: string;
  @Filter() tool?: string;
  @Filter() class?: string;
  @Filter() object_id?: string;
  @Filter() object_digest?: string;
  @Filter() principal?: string;
  @Filter() key?: string;
  @Filter() tenant?: string;
  @Filter() approver?: string;
  @Filter() gate?: string;
  @Filter() code?: string;
  @Filter() address?: string;
  @Filter() correlation_id?: string;
  @Filter() request_id?: string;
  @Filter() trace_id?: string;
  @Filter() cursor?: string;

  @IsOptional()
  @IsIn(['success', 'failure'], { message: 'outcome must be success or failure' })
  outcome?: 'success' | 'failure';

  @IsOptional()
  @IsIn(['approve', 'deny', 'unavailable'], { message: 'decision must be approve, deny or unavailable' })
  decision?: 'approve' | 'deny' | 'unavailable';

  @IsOptional()
  @IsIn(['json', 'csv'], { message: 'format must be json or csv' })
  format?: 'json' | 'csv';
}

/** The time whose use is summed. */
export class UsageQuery {
  @IsString({ message: `from must be ${MOMENT_RULE}` })
  from!: string;

  @IsString({ message: `to must be ${MOMENT_RULE}` })
  to!: string;
}

/** Leaves empty parameters out: fields of the page that nobody filled in. */
class FilledIn implements PipeTransform<Readonly<Record<string, unknown>>> {
  transform(query: Readonly<Record<string, unknown>>): object {
    return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ''));
  }
}

function toAuditQuery(asked: AuditSearchQuery): AuditQuery {
  const {
    correlation_id,
    request_id,
    trace_id,
    object_id,
    object_digest,
    class: className,
    format: _format,
    ...query
  } = asked;
  const members = {
    ...query,
    className,
    correlationId: correlation_id,
    requestId: request_id,
    traceId: trace_id,
    objectId: object_id,
    objectDigest: object_digest,
  };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as AuditQuery;
}

/** How many one principal, and all of this process, do at once. */
interface SlotLimits {
  readonly own: number;
  readonly all: number;
}

const SEARCHES: SlotLimits = { own: 2, all: 4 };
const FILES: SlotLimits = { own: 1, all: 2 };

/** Counts what runs, so that one operator leaves some for others. */
class Slots {
  private readonly taken: string[] = [];

  constructor(
    private readonly limits: SlotLimits,
    private readonly refusal: string,
  ) {}

  /** @returns gives the slot back. @throws NotServed without a free one */
  take(principal: string): () => void {
    const { taken, limits } = this;
    const own = taken.filter((one) => one === principal).length;
    if (own >= limits.own || taken.length >= limits.all)
      throw new NotServed(503, this.refusal, { 'Retry-After': '5' });
    taken.push(principal);
    return () => void taken.splice(taken.indexOf(principal), 1);
  }
}

/** Milliseconds in which a reader of a file takes what was written. */
const TAKEN_WITHIN = 30_000;
/** Milliseconds in which a file is read to its end. */
const FILE_WITHIN = 300_000;

/** The answer of a search as JSON. */
export interface AuditAnswer extends AuditPage {
  readonly reach: AuditTrail['reach'];
  /** The store of records cannot be searched: these are the latest records of the replica that answers. */
  readonly degraded: boolean;
}

/** Milliseconds in which a store that may be silent has to answer. */
const SEARCHED_WITHIN = 20_000;

/** Searches audit records, newest first. */
@OperatorController('console/api/audit')
export class AuditController {
  private readonly searches = new Slots(SEARCHES, 'too many searches run already');
  private readonly files = new Slots(FILES, 'too many files are being written already');

  constructor(
    @Inject(AuditTrail) private readonly trail: AuditTrail,
    @Inject(RecentAuditTrail) private readonly recent: RecentAuditTrail,
    @Inject(OperatorNotes) private readonly notes: OperatorNotes,
    @Inject(McpEdge) private readonly edge: Pick<McpEdge, 'unread'>,
  ) {}

  @Get()
  @WithoutSharedState()
  async search(
    @Query(new FilledIn(), createValidationPipe(AuditSearchQuery)) query: AuditSearchQuery,
    @CurrentOperator() operator: Operator,
    @ClosedSignal() closed: AbortSignal,
    @Res() response: ServerResponse,
  ): Promise<void> {
    if (query.format === 'csv') return this.file(query, operator, closed, response);
    const free = this.searches.take(operator.agent.principal);
    try {
      sendJson(response, 200, await this.find(toAuditQuery(query), closed));
    } catch (error) {
      // Nobody is there any more to be answered.
      if (!closed.aborted) throw error;
    } finally {
      free();
    }
  }

  /** Calls, rows, tokens and cost by day, agent and tenant, as CSV. */
  @Get('usage')
  async usage(
    @Query(createValidationPipe(UsageQuery)) { from, to }: UsageQuery,
    @CurrentOperator() operator: Operator,
    @ClosedSignal() closed: AbortSignal,
    @Res() response: ServerResponse,
  ): Promise<void> {
    const free = this.files.take(operator.agent.principal);
    const over = AbortSignal.any([closed, AbortSignal.timeout(FILE_WITHIN)]);
    try {
      const usage = await sumUsage(this.trail, { from, to }, USAGE_LIMITS, over).catch(refuseQuery);
      // Its reader may have been signed out since.
      await operator.confirm();
      this.notes.write(operator, 'console.usage_csv', new URLSearchParams({ from, to }).toString());
      response.writeHead(200, toCsvHeaders('usage')).end(usageCsv(usage));
    } catch (error) {
      if (!closed.aborted) throw error;
    } finally {
      free();
    }
  }

  /** @throws NotServed */
  private async find(query: AuditQuery, closed: AbortSignal): Promise<AuditAnswer> {
    const { trail, recent } = this;
    const over = AbortSignal.any([closed, AbortSignal.timeout(SEARCHED_WITHIN)]);
    try {
      return { reach: trail.reach, degraded: false, ...(await trail.search(query, over)) };
    } catch (error) {
      if (error instanceof AuditQueryError || closed.aborted || (trail as AuditTrail) === recent)
        return refuseQuery(error);
      // What is recent is known here, whatever became of the store.
      return { reach: recent.reach, degraded: true, ...(await recent.search(query)) };
    }
  }

  private async file(
    query: AuditSearchQuery,
    operator: Operator,
    closed: AbortSignal,
    response: ServerResponse,
  ): Promise<void> {
    const free = this.files.take(operator.agent.principal);
    const over = AbortSignal.any([closed, AbortSignal.timeout(FILE_WITHIN)]);
    try {
      const { limit: _limit, ...asked } = toAuditQuery(query);
      const pieces = auditCsv(this.trail, asked, CSV_LIMITS, over);
      // Nothing is sent before the first search: a wrong query is answered like any other.
      let piece = await pieces.next().catch(refuseQuery);
      this.notes.write(operator, 'console.audit_csv', formatFilters(query));
      response.writeHead(200, toCsvHeaders('audit'));
      for (; !piece.done; piece = await pieces.next()) {
        over.throwIfAborted();
        // Its reader may have been signed out since.
        await operator.confirm();
        if (response.write(piece.value)) continue;
        this.edge.unread.wrote(response);
        await once(response, 'drain', { signal: AbortSignal.any([over, AbortSignal.timeout(TAKEN_WITHIN)]) });
      }
      response.end();
    } catch (error) {
      // A file that ends early must not look like a whole one.
      if (!response.headersSent && !closed.aborted) throw error;
      response.destroy();
    } finally {
      free();
    }
  }
}

function toCsvHeaders(what: 'audit' | 'usage'): Record<string, string> {
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  return {
    'Content-Type': 'text/csv; charset=utf-8; header=present',
    'Content-Disposition': `attachment; filename="parley-${what}-${time}.csv"`,
  };
}

/** Characters of the filters in a record. */
const MAX_TARGET = 200;

/** The filters of a file, for the record of it; undefined: none. */
function formatFilters({ limit: _limit, format: _format, ...filters }: AuditSearchQuery): string | undefined {
  const given = Object.entries(filters).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(given).toString();
  if (text.length > MAX_TARGET) return `${cutText(text, MAX_TARGET - 1)}…`;
  return text === '' ? undefined : text;
}

/** @throws NotServed for a query that cannot be answered */
function refuseQuery(error: unknown): never {
  throw error instanceof AuditQueryError ? new NotServed(400, error.message) : error;
}
