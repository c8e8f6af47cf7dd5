import type { JsonObject } from '#dispatcher';

/** One event name for everything: clients drop events of names they do not know. */
export function messageFrame(json: string): string {
  return `event: message\ndata: ${json}\n\n`;
}

/** A message that its client can name when it comes back for the rest. */
export function identifiedFrame(id: string, json: string): string {
  return `id: ${id}\nevent: message\ndata: ${json}\n\n`;
}

/** Gives a client an id to come back with before there is any message; `retry` in milliseconds. */
export function primingFrame(id: string, retry: number): string {
  return `id: ${id}\nretry: ${retry}\ndata: \n\n`;
}

export const CONNECTED = ': connected\n\n';
export const KEEP_ALIVE = Buffer.from(': keep-alive\n\n');

/** A notification as it crosses the wire. */
export function notification(method: string, params?: JsonObject): JsonObject {
  return params === undefined ? { jsonrpc: '2.0', method } : { jsonrpc: '2.0', method, params };
}
