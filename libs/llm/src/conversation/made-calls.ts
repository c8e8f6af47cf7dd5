import type { CallResult, OfferedTool, RequestedCall } from '../model/language-model.js';
import type { ToolDesk } from '../tools/tool-desk.js';
import { untrustedResult } from '../tools/untrusted-result.js';
import type { ConversationListener, MadeCall } from './listener.js';

export interface CallingParts {
  readonly desk: ToolDesk;
  readonly offered: readonly OfferedTool[];
  readonly signal: AbortSignal;
  readonly listener: Required<ConversationListener>;
  /** Characters of one result that a model is given. */
  readonly maxResult: number;
}

/** Reads that run side by side. */
const WIDTH = 4;
const NOT_AN_OBJECT = 'The arguments are not a JSON object; nothing was called.';

export interface ExecutedCall {
  readonly made: MadeCall;
  readonly result: CallResult;
}

/**
 * Makes the calls of one turn and returns what came of them, in the order they were asked for. Reads run side by side; as
 * soon as one of them may change something, all run one after the other.
 */
export async function makeCalls(
  calls: readonly RequestedCall[],
  parts: CallingParts,
): Promise<readonly ExecutedCall[]> {
  const reads = new Set(parts.offered.filter(({ readOnly }) => readOnly).map(({ name }) => name));
  const width = calls.every(({ name }) => reads.has(name)) ? WIDTH : 1;
  const executed: ExecutedCall[] = [];
  let next = 0;
  const worker = async () => {
    while (next < calls.length) {
      const index = next;
      next += 1;
      executed[index] = await makeCall(calls[index] as RequestedCall, parts);
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, calls.length) }, worker));
  return executed;
}

async function makeCall(
  { id, name, args }: RequestedCall,
  { desk, signal, listener, maxResult }: CallingParts,
): Promise<ExecutedCall> {
  signal.throwIfAborted();
  listener.onToolCall({ name, arguments: args });
  const reply =
    args === null
      ? { text: NOT_AN_OBJECT, failed: true }
      : await desk.call(name, args, { signal, onProgress: (update) => listener.onProgress(name, update) });
  const made = { name, arguments: args, result: reply.text, failed: reply.failed };
  listener.onToolResult(made);
  return { made, result: { id, content: untrustedResult(reply.text, maxResult), failed: reply.failed } };
}
