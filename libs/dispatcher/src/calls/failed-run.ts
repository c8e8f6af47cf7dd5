import { HttpException } from '@nestjs/common';
import { type Refusal, refusals, Refused, Unauthorized, ClientUnreachable } from '#core';
import { InputRequired } from '../client-requests/client-requests.js';
import { ProtocolFault, RPC } from '../protocol-fault.js';
import { ContinuesAsTask } from '../tasks/task-store.js';

export interface FailedRun {
  readonly refusal: Refusal;
  readonly error: unknown;
}

const isInterruption = (error: unknown): boolean =>
  error instanceof InputRequired || error instanceof ContinuesAsTask || error instanceof ProtocolFault;

/** Converts an error of a run into the refusal that the caller receives. @throws errors that the run must not answer */
export function failedRun(error: unknown, tool: string): FailedRun {
  if (error instanceof Refused) return { refusal: error.refusal, error };
  // The transport answers Unauthorized; it is not a tool failure.
  if (error instanceof Unauthorized) throw error;
  // The run has no outcome yet: the client must act first, and the kernel answers it.
  if (isInterruption(error)) throw error;
  if (error instanceof ClientUnreachable) return { refusal: unanswered(error), error };
  const refusal = refusalByApplication(error);
  if (refusal) return { refusal, error };
  const cause = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { refusal: refusals.internalError(tool, cause), error };
}

function unanswered({ reason }: ClientUnreachable): Refusal {
  return reason === 'aborted' ? refusals.cancelled() : refusals.clientUnreachable(reason);
}

/**
 * Converts a Nest HTTP exception of an application's guards, pipes and tools into a refusal. The agent receives the
 * message of a client error; a server error stays internal.
 */
function refusalByApplication(error: unknown): Refusal | null {
  if (!(error instanceof HttpException)) return null;
  const status = error.getStatus();
  if (status >= 500) return null;
  const message = messageOf(error);
  if (status === 400 || status === 422) return refusals.invalidArgument(message, 'application');
  return refusals.accessDenied('application', message);
}

/** A ValidationPipe lists its findings in the body. */
function messageOf(error: HttpException): string {
  const body = error.getResponse();
  const message = typeof body === 'object' ? (body as { message?: unknown }).message : body;
  const text = Array.isArray(message) ? message.join('; ') : message;
  return (typeof text === 'string' && text !== '' ? text : error.message).slice(0, 500);
}

/**
 * The outcome of a call that ended in a protocol error instead of a tool result, for audit records. Null for a call
 * that has not ended: a client request, or a task that continues.
 */
export function refusalByProtocol(error: unknown): Refusal | null {
  if (error instanceof Unauthorized) return refusals.identityUnresolved(error.cause ?? error.message);
  if (!(error instanceof ProtocolFault)) return null;
  const refusal =
    error.code === RPC.missingCapability
      ? refusals.notImplemented(error.message)
      : refusals.invalidArgument(error.message);
  return { ...refusal, gate: 'protocol' };
}
