import { isLogLevel } from '#agent';
import type { JsonObject } from '../json-object.js';
import { invalidParams } from '../protocol-fault.js';
import type { MethodRequest } from './method.js';

/** `logging/setLevel`: without a session there is nothing that could be kept, and nothing to complain of. */
export async function setLogLevel({ params, context }: MethodRequest): Promise<JsonObject> {
  const { level } = params;
  if (!isLogLevel(level)) throw invalidParams('Invalid log level');
  await context.setLogLevel?.(level);
  return {};
}
