import type { AuditRecords } from './audit-records.js';
import type { ToolRefusal, ToolResult } from './call-results.js';

/**
 * The former name of `AuditRecords`.
 * @deprecated Use `AuditRecords`.
 */
export type AuditBook = AuditRecords;

/**
 * The former name of `ToolResult`.
 * @deprecated Use `ToolResult`.
 */
export type Told<Data = Record<string, unknown>> = ToolResult<Data>;

/**
 * The former name of `ToolRefusal`.
 * @deprecated Use `ToolRefusal`.
 */
export type ToldRefusal = ToolRefusal;
