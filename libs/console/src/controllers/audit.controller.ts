import { Get, Inject, type PipeTransform, Query } from '@nestjs/common';
import { Transform } from 'class-transformer';
import { IsIn, IsInt, IsOptional, MaxLength } from 'class-validator';
import { type AuditQuery, AuditQueryError, AuditTrail } from '#audit';
import { NotServed, validated } from '#streaming';
import { OperatorController } from '../console.guards.js';
import { limitOf } from './page-query.js';

const Filter = (): PropertyDecorator => (target, name) => {
  IsOptional()(target, name);
  MaxLength(500, { message: ({ property }) => `${property}: too long` })(target, name as string);
};

/** Query parameters of a search. */
export class AuditSearchQuery {
  @Transform(({ value }) => limitOf(value))
  @IsInt()
  limit = limitOf(undefined);

  @Filter() from?: string;
  @Filter() to?: string;
  @Filter() type?: string;
  @Filter() agent?: string;
  @Filter() tool?: string;
  @Filter() class?: string;
  @Filter() principal?: string;
  @Filter() tenant?: string;
  @Filter() gate?: string;
  @Filter() code?: string;
  @Filter() address?: string;
  @Filter() correlation_id?: string;
  @Filter() trace_id?: string;
  @Filter() cursor?: string;

  @IsOptional()
  @IsIn(['success', 'failure'], { message: 'outcome must be success or failure' })
  outcome?: 'success' | 'failure';
}

const KNOWN: ReadonlySet<string> = new Set([
  'limit',
  'from',
  'to',
  'type',
  'agent',
  'tool',
  'class',
  'principal',
  'tenant',
  'outcome',
  'gate',
  'code',
  'address',
  'correlation_id',
  'trace_id',
  'cursor',
] satisfies (keyof AuditSearchQuery)[]);

/** Leaves empty parameters out, and refuses unknown ones: a misspelt filter must not match everything. */
class KnownFilters implements PipeTransform<Readonly<Record<string, string>>> {
  /** @throws NotServed */
  transform(query: Readonly<Record<string, string>>): object {
    const given = Object.entries(query).filter(([, value]) => value !== '');
    const unknown = given.find(([name]) => !KNOWN.has(name));
    if (unknown) throw new NotServed(400, `unknown filter ${unknown[0].slice(0, 40)}`);
    return Object.fromEntries(given);
  }
}

function auditQueryOf({
  correlation_id,
  trace_id,
  class: className,
  ...query
}: AuditSearchQuery): AuditQuery {
  const asked = { ...query, className, correlationId: correlation_id, traceId: trace_id };
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined)) as AuditQuery;
}

/** Searches audit records, newest first. */
@OperatorController('console/api/audit')
export class AuditController {
  constructor(@Inject(AuditTrail) private readonly trail: AuditTrail) {}

  @Get()
  async search(
    @Query(new KnownFilters(), validated(AuditSearchQuery)) query: AuditSearchQuery,
  ): Promise<object> {
    const page = await this.trail.search(auditQueryOf(query)).catch((error: unknown) => {
      throw error instanceof AuditQueryError ? new NotServed(400, error.message) : error;
    });
    return { reach: this.trail.reach, ...page };
  }
}
