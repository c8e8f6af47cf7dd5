import { Transform } from 'class-transformer';
import { type PipeTransform } from '@nestjs/common';
import { IsIn, IsInt, IsOptional, MaxLength } from 'class-validator';
import type { AuditQuery } from '#audit';
import { NotServed } from '#streaming';
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
  @Filter() principal?: string;
  @Filter() tenant?: string;
  @Filter() gate?: string;
  @Filter() code?: string;
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
  'principal',
  'tenant',
  'outcome',
  'gate',
  'code',
  'correlation_id',
  'trace_id',
  'cursor',
] satisfies (keyof AuditSearchQuery)[]);

/** Leaves empty parameters out, and refuses unknown ones: a misspelt filter must not match everything. */
export class KnownFilters implements PipeTransform<Readonly<Record<string, string>>> {
  /** @throws NotServed */
  transform(query: Readonly<Record<string, string>>): object {
    const given = Object.entries(query).filter(([, value]) => value !== '');
    const unknown = given.find(([name]) => !KNOWN.has(name));
    if (unknown) throw new NotServed(400, `unknown filter ${unknown[0].slice(0, 40)}`);
    return Object.fromEntries(given);
  }
}

export function auditQueryOf({ correlation_id, trace_id, ...query }: AuditSearchQuery): AuditQuery {
  const asked = { ...query, correlationId: correlation_id, traceId: trace_id };
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined)) as AuditQuery;
}
