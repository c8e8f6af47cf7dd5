import type { Attributes } from '@opentelemetry/api';
import type { DataOperation } from '#agent';
import { OTHER_NAME } from '../bounded-names.js';
import type { Arrival, SaidMessage } from '../telemetry.js';

/** What a client may name a request by and still be told in a trace. */
const PLAIN_ID = /^[\w.-]{1,64}$/;

const VERBS = new Set(['GET', 'POST', 'DELETE', 'HEAD', 'OPTIONS', 'PUT', 'PATCH']);

export function verbOf({ verb }: Arrival): string {
  return VERBS.has(verb) ? verb : OTHER_NAME;
}

export function requestAttributes(arrival: Arrival): Attributes {
  return {
    'http.request.method': verbOf(arrival),
    'http.route': arrival.route,
    'network.protocol.name': 'http',
    'network.protocol.version': arrival.httpVersion,
    'network.transport': 'tcp',
  };
}

/** What a message is about, by a name that exists: a tool or a prompt, never an argument. */
export interface MessageTarget {
  readonly tool?: string;
  readonly prompt?: string;
}

export function messageAttributes(
  { id, version, session, correlationId, era }: SaidMessage,
  method: string,
  { tool, prompt }: MessageTarget,
  transport: 'tcp' | 'pipe',
): Attributes {
  const named = typeof id === 'number' || (typeof id === 'string' && PLAIN_ID.test(id));
  return {
    'mcp.method.name': method,
    'mcp.protocol.version': /^\d{4}-\d{2}-\d{2}$/.test(version) ? version : OTHER_NAME,
    'parley.era': era,
    'network.transport': transport,
    ...(transport === 'tcp' && { 'network.protocol.name': 'http' }),
    ...(named && { 'jsonrpc.request.id': String(id) }),
    ...(session !== undefined && { 'mcp.session.id': session }),
    ...(correlationId !== undefined && { 'parley.correlation_id': correlationId }),
    ...(tool !== undefined && { 'gen_ai.tool.name': tool, 'gen_ai.operation.name': 'execute_tool' }),
    ...(prompt !== undefined && { 'gen_ai.prompt.name': prompt }),
  };
}

export function databaseAttributes({ name, className }: DataOperation): Attributes {
  return {
    'db.system.name': 'mongodb',
    'db.operation.name': name,
    'db.collection.name': className,
  };
}
