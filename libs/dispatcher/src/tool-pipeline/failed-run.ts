import { type Refusal, Refused, refusals, Unauthorized } from '#agent';
import { InputRequired } from '../asks/input-required.js';
import { ClientUnreachable } from '../client-link.js';
import { ProtocolFault } from '../protocol-fault.js';
import { ContinuesAsTask } from '../tasks/continues-as-task.js';
import { refusalByApplication } from './refusal-by-application.js';

export interface FailedRun {
  readonly refusal: Refusal;
  readonly error: unknown;
}

const isInterruption = (error: unknown): boolean =>
  error instanceof InputRequired || error instanceof ContinuesAsTask || error instanceof ProtocolFault;

/** What the caller is told of what a run threw. @throws what is not the run's to answer */
export function failedRun(error: unknown, tool: string): FailedRun {
  if (error instanceof Refused) return { refusal: error.refusal, error };
  // Unauthorized is the edge's to answer, not a tool failure.
  if (error instanceof Unauthorized) throw error;
  // Not an outcome yet: the client has to do something first, which is the kernel's to say.
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
