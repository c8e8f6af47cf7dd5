import { Get, Inject, Query } from '@nestjs/common';
import { AuditQueryError, AuditTrail } from '#audit';
import { NotServed, validated } from '#streaming';
import { OperatorController } from '../console.guards.js';
import { auditQueryOf, AuditSearchQuery, KnownFilters } from './audit-query.js';

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
