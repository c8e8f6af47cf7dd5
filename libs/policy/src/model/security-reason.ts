import { Refused, refusals } from '#core';

/** Why a query or a write was blocked, for the operator's log alone (docs/reference/refusals.md#security-refusals-are-opaque). */
export const SECURITY_REASONS = [
  'code_execution',
  'cross_class_denied',
  'denied_field_ref_in_expr',
  'denied_internal_collection',
  'denied_internal_field',
  'denied_operator',
  'denied_system_variable',
  'forensic_operator_in_expr',
  'invalid_key',
  'invalid_regex',
  'invalid_value',
  'max_depth_exceeded',
  'nested_denied_operator',
  'operator_in_value',
  'regex_pattern_too_long',
  'regex_redos',
  'regex_too_long',
  'stage0_only_atlas_stage',
  'unknown_stage',
] as const;
export type SecurityReason = (typeof SECURITY_REASONS)[number];

/** @param at the place in the query or the fields; cut to 200 characters, because callers choose its names */
export function blocked(
  gate: 'where' | 'pipeline' | 'arguments',
  reason: SecurityReason,
  at?: string,
): Refused {
  return new Refused(refusals.securityBlocked(gate, reason, at?.slice(0, 200)));
}
