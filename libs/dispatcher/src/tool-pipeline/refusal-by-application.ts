import { HttpException } from '@nestjs/common';
import { type Refusal, refusals } from '#agent';

/**
 * What an application's guards, pipes and tools throw in Nest's words, in ours: what it says to a client, the agent is told;
 * a fault of its own stays inside.
 */
export function refusalByApplication(error: unknown): Refusal | null {
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
  const told = typeof body === 'object' ? (body as { message?: unknown }).message : body;
  const text = Array.isArray(told) ? told.join('; ') : told;
  return (typeof text === 'string' && text !== '' ? text : error.message).slice(0, 500);
}
