import { setTimeout as pause } from 'node:timers/promises';
import type { Arriving, Asked, EdgeUnderTest } from './edge-under-test.js';
import { initialize } from './requests.js';

export const EVENTS = { Accept: 'application/json, text/event-stream' };

/** A `tools/call` of the sessions' revisions. */
export const call = (name: string, id: unknown = 1, meta?: object) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: {}, ...(meta && { _meta: meta }) },
});

export const cancel = (requestId: unknown) => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId, reason: 'no longer wanted' },
});

/** The test's own time limit ends a wait that never succeeds. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await pause(2);
}

/** Opens a session. @returns the headers its requests carry */
export async function openSession(
  { ask }: Pick<EdgeUnderTest, 'ask'>,
  version = '2025-06-18',
  key = 'ada',
): Promise<Record<string, string>> {
  const answer = await ask({ headers: { 'X-MCP-API-Key': key }, body: initialize(version) });
  return { 'X-MCP-API-Key': key, 'Mcp-Session-Id': String(answer.headers['mcp-session-id']) };
}

export const listenAs = (headers: Asked['headers']): Asked => ({
  method: 'GET',
  headers: { Accept: 'text/event-stream', ...headers },
});

/** A listening stream that is known to be attached. */
export async function openListening(edge: EdgeUnderTest, headers: Asked['headers']): Promise<Arriving> {
  const stream = await edge.open(listenAs(headers));
  await until(() => stream.frames().length > 0);
  return stream;
}
