import type { ExecutionContext } from '@nestjs/common';
import { Refused } from '#agent';
import { auditedArgumentNames } from '#audit';
import type { ToolCall, ToolHandler } from '#tools';
import { toolExecutionOf } from './tool-execution.js';

const asObject = (value: unknown): Readonly<Record<string, unknown>> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};

/**
 * What whoever approves a call is shown. A declared method is asked for its dry run, past the same gates as the call; any
 * other call is shown as proposed, without the arguments that records leave out.
 */
export async function previewOf(host: ExecutionContext): Promise<unknown> {
  const { name, args } = toolExecutionOf(host);
  const given = asObject(args);
  if (name !== 'call_method') return { tool: name, args: shown(given) };
  const handler = host.getHandler() as ToolHandler;
  const rehearsed = { ...given, arguments: { ...asObject(given['arguments']), dry_run: true } };
  try {
    const call = host.getArgByIndex<ToolCall>(1);
    return await withinSeconds(call.tool.timeout, () => handler(rehearsed, call));
  } catch (error) {
    const told = error instanceof Refused ? error.refusal.message : 'no preview could be made';
    return { tool: name, preview_error: told, args: shown(given) };
  }
}

/** The interceptors that bound a call are not around its preview. */
async function withinSeconds(seconds: number, work: () => unknown): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the preview took too long')), seconds * 1000);
  });
  try {
    return await Promise.race([work(), expired]);
  } finally {
    clearTimeout(timer);
  }
}

function shown(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const names = new Set(auditedArgumentNames(args));
  return Object.fromEntries(Object.entries(args).filter(([name]) => names.has(name)));
}
