import type { Refusal } from '#agent';
import type { ToolOutcome } from '#tools';
import { isJsonObject, type JsonObject } from '../json-object.js';
import { invalidParams } from '../protocol-fault.js';
import type { Dialect } from '../protocol-versions.js';
import { blockIn } from './content-dialect.js';

const text = (value: string) => [{ type: 'text', text: value }];

function errorMeta(refusal: Refusal): JsonObject {
  return {
    'parse.error_code': refusal.code,
    ...(refusal.retryAfter !== undefined && { 'parse.retry_after': refusal.retryAfter }),
    ...(refusal.details !== undefined && { 'parse.details': refusal.details }),
  };
}

/** A failed call. `cause` and `gate` of the refusal stay inside. */
export function failedResult(refusal: Refusal): JsonObject {
  const told = refusal.body
    ? JSON.stringify(
        { success: false, error: refusal.message, error_code: refusal.code, ...refusal.body },
        null,
        2,
      )
    : refusal.message;
  return { content: text(told), isError: true, ...(!refusal.wordsOnly && { _meta: errorMeta(refusal) }) };
}

function cancelledResult(message: string): JsonObject {
  return { content: text(message), isError: true, cancelled: true };
}

/**
 * What came of a call, as a revision says it.
 * @throws ProtocolFault for a refusal of which the caller may know nothing
 */
export function toolResult(outcome: ToolOutcome, dialect: Dialect, signal: AbortSignal): JsonObject {
  if (!outcome.ok && outcome.refusal.code === 'cancelled') return cancelledResult(outcome.refusal.message);
  if (signal.aborted) return cancelledResult('Cancelled by client');
  if (!outcome.ok) {
    if (outcome.refusal.opaque) throw invalidParams();
    return failedResult(outcome.refusal);
  }
  const structured =
    outcome.structured && dialect.structured && (dialect.anyStructuredRoot || isJsonObject(outcome.data));
  return {
    content: outcome.blocks?.map((block) => blockIn(dialect, block)) ?? text(outcome.text),
    isError: false,
    ...(structured && { structuredContent: outcome.data }),
  };
}
