import type { Span } from '@opentelemetry/api';
import { OTHER_NAME } from './bounded-names.js';
import { ObservedMessage } from './observed-message.js';
import type { ObservedParts } from './observed-parts.js';
import type { SaidMessage } from './telemetry.js';
import { messageAttributes, type MessageTarget } from './tracing/span-attributes.js';

const NOTIFICATION = /^notifications\/[a-z_/]{1,40}$/;

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}

/** A name that exists: what a client made up is told by no name. */
function targetOf({ method, params }: SaidMessage, { names }: ObservedParts): MessageTarget {
  const name = member(params, 'name');
  if (typeof name !== 'string') return {};
  if (method === 'tools/call') return { tool: names.isTool(name) ? name : OTHER_NAME };
  if (method === 'prompts/get') return { prompt: names.isPrompt(name) ? name : OTHER_NAME };
  return {};
}

/**
 * Begins to listen to a message. The trace context in its `_meta` is its parent; that of the request which carried it is
 * linked then, as one request can carry several messages (MCP conventions, context propagation).
 */
export function observeMessage(
  parts: ObservedParts,
  said: SaidMessage,
  transport: 'http' | 'stdio',
  carrier: Span | null,
): ObservedMessage {
  const { tracing } = parts;
  const method = said.served || NOTIFICATION.test(said.method) ? said.method : OTHER_NAME;
  const labels = { method, era: said.era, transport };
  if (!tracing) return new ObservedMessage(parts, labels, null);
  const target = targetOf(said, parts);
  const meta = member(said.params, '_meta');
  const origin = tracing.fromCaller(member(meta, 'traceparent'), member(meta, 'tracestate'), carrier);
  const name = target.tool ?? target.prompt;
  const span = tracing.start(
    name === undefined ? method : `${method} ${name}`,
    'SERVER',
    origin,
    messageAttributes(said, method, target, transport === 'http' ? 'tcp' : 'pipe'),
  );
  return new ObservedMessage(parts, labels, span, said.correlationId);
}
