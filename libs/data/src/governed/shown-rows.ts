import { TIERS } from '#agent';
import {
  type ClassAccess,
  isTenantRefusal,
  type ReadOperation,
  redact,
  tenantBinding,
  toldMasks,
  withholdUnreadable,
} from '#policy';
import type { GovernedClass } from '../governed-records.js';
import type { ParseRow } from '../record-store.js';
import { reportMalformed } from './malformed-rights.js';
import { guardRow, type Onlooker, type RowGuard } from './row-guard.js';
import { OPERATION_OF_TIER } from './class-permission.js';
import type { RecordsParts } from './row-rules.js';

/** The last passes over fetched rows: protected and masked columns, rows inside rows, withheld classes and internal columns. */
export function shownRows(rows: readonly ParseRow[], onlooker: Onlooker, guard?: RowGuard): ParseRow[] {
  const { scope } = onlooker;
  const { strings } = scope.rights.principals;
  return rows.map((row) => {
    if (guard) guardRow(row, guard, onlooker);
    const own = strings === null ? row : withholdUnreadable(row, strings, reportMalformed);
    return redact(own, (name) => scope.isWithheld(name)) as ParseRow;
  });
}

const NO_MASKS: ReadonlyMap<string, string> = new Map();
const READS: readonly ReadOperation[] = ['find', 'count', 'get'];

/** What may be told of a class; null for one whose schema is not known. */
export function shownClass(
  { className, schema, readable, masks }: ClassAccess,
  { scope, agent }: Pick<RecordsParts, 'scope' | 'agent'>,
): GovernedClass | null {
  if (!schema) return null;
  const policy = scope.classPolicy(className);
  const bound = !isTenantRefusal(tenantBinding(agent, policy));
  return {
    className,
    schema,
    policy,
    fields: [...schema.fields.keys()].filter((name) => readable?.has(name) ?? true),
    masks: masks ? toldMasks(masks) : NO_MASKS,
    reads: new Set(READS.filter((operation) => bound && scope.rights.gate(className, operation) === null)),
    methodTiers: new Set(
      TIERS.filter((tier) => scope.rights.gate(className, OPERATION_OF_TIER[tier]) === null),
    ),
  };
}
