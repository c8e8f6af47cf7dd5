import { isJsonObject, type JsonObject, member } from '#dispatcher';
import type { ToolReply } from '#llm';

/** The result of a tool as scripts want it: `success` with `data`, or `error` and `error_code`. */
export function toolEnvelope({ text, failed, result }: ToolReply): JsonObject {
  if (!failed) return { success: true, data: member(result, 'structuredContent') ?? parsed(text) };
  const told = parsed(text);
  // Refusals with a body say the same in JSON.
  if (isJsonObject(told) && told['success'] === false) return told;
  const meta = member(result, '_meta');
  const code = member(meta, 'parse.error_code');
  const retryAfter = member(meta, 'parse.retry_after');
  const details = member(meta, 'parse.details');
  const protocol = member(member(result, 'error'), 'code');
  return {
    success: false,
    error: text,
    ...(code !== undefined && { error_code: code }),
    ...(retryAfter !== undefined && { retry_after: retryAfter }),
    ...(details !== undefined && { details }),
    ...(protocol !== undefined && { protocol_error: protocol }),
    ...(member(result, 'cancelled') === true && { cancelled: true }),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
