import type { Refusal } from '#agent';
import type { AuditRecord } from './audit-record.js';

/** @param errorClass of what was thrown; a refusal that was returned instead is one as well */
export function auditedRefusal(
  { code, gate, details, cause }: Refusal,
  errorClass: string,
): Pick<AuditRecord, 'error_code' | 'error_class' | 'gate' | 'denial_kind' | 'outcome' | 'cause'> {
  return {
    error_code: code,
    error_class: errorClass,
    gate,
    ...(details?.kind && { denial_kind: details.kind }),
    ...(details?.outcome && { outcome: details.outcome }),
    ...(cause !== undefined && { cause }),
  };
}
