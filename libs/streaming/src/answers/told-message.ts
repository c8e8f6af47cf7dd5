import { type KernelReply, RPC, StreamedResult } from '#dispatcher';
import type { MessageEnding, SaidMessage } from '#telemetry';
import type { EdgeParts } from '../rungs/rung.js';
import type { Speech } from '../speech.js';
import type { Call } from '../wire/call.js';

/** How a message ended that was not answered by the kernel. */
export const FAILED: MessageEnding = Object.freeze({ outcome: 'error', code: RPC.internalError });

/** A message in the words of telemetry. @param session the caller's own */
export function saidBy(
  { message, label }: Pick<Call, 'message' | 'label'>,
  { era, version }: Pick<Speech, 'era' | 'version'>,
  { kernel }: Pick<EdgeParts, 'kernel'>,
  session: string | undefined,
): SaidMessage {
  const { method, params, id } = message;
  const served = kernel.serves(method, era, version);
  return { method, served, params, id, era, version, session, correlationId: label };
}

export function endingOf(reply: KernelReply): MessageEnding {
  if (reply instanceof StreamedResult || 'accepted' in reply) return { outcome: 'ok' };
  if ('error' in reply) return { outcome: 'error', code: reply.error.code };
  return { outcome: reply.result['isError'] === true ? 'tool_error' : 'ok' };
}
