import type { Provider } from '@nestjs/common';
import { AuditBook, AuditSink, AuditTrail, LoggerAuditSink, RecentAuditTrail } from '#audit';

/** Where everything that is decided is written down, and where it is found again. */
export function auditProviders(): Provider[] {
  const recent = new RecentAuditTrail();
  return [
    {
      provide: AuditSink,
      useFactory: () => new AuditBook({ listeners: [new LoggerAuditSink()], recent }),
    },
    { provide: AuditTrail, useValue: recent },
  ];
}
