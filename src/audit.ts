import type { Provider } from '@nestjs/common';
import { AuditBook, AuditSink, AuditTrail, LoggerAuditSink, RecentAuditTrail } from '#audit';

/**
 * Where everything that is decided is written down, and where it is found again.
 * @param listeners hear every record besides
 */
export function auditProviders(listeners: readonly AuditSink[] = []): Provider[] {
  const recent = new RecentAuditTrail();
  return [
    {
      provide: AuditSink,
      useFactory: () => new AuditBook({ listeners: [new LoggerAuditSink(), ...listeners], recent }),
    },
    { provide: AuditTrail, useValue: recent },
  ];
}
