import {
  type Agent,
  type ProgressUpdate,
  sanitizeCorrelationId,
  type ClientLink,
  McpRequest,
  isJsonObject,
  type JsonObject,
} from '#core';
import { assertOptions, type OptionNames } from '#policy';
import { type Kernel, type KernelReply, StreamedResult } from '#dispatcher';

/** Options of a message without a transport. */
export interface MessageOptions {
  /** The MCP revision of the message, one with sessions. Default `2025-11-25`. */
  readonly version?: string;
  /** Aborts the call. Default: only its timeout does. */
  readonly signal?: AbortSignal;
  /** `[A-Za-z0-9._-]{1,128}`: links audit records and database comments. Default none. */
  readonly correlationId?: string;
  /** Receives the progress of the call. Default: progress is dropped. */
  readonly progress?: (update: ProgressUpdate) => void;
  /** Capabilities of the client, as in `initialize`. Default: none. */
  readonly clientCapabilities?: Readonly<Record<string, unknown>>;
  /** Sends requests to the client (elicitation, sampling, approvals). Default: client requests are not supported. */
  readonly link?: ClientLink;
}

/** A JSON-RPC envelope and the HTTP status that a web transport would send with it. */
export interface AnsweredMessage {
  /** 200; 202 for a notification; 400 for an invalid message; 401 where the agent's session has ended. */
  readonly status: number;
  /** Null for a notification, which has no answer. */
  readonly body: Readonly<Record<string, unknown>> | null;
}

const OPTIONS = {
  version: true,
  signal: true,
  correlationId: true,
  progress: true,
  clientCapabilities: true,
  link: true,
} satisfies OptionNames<MessageOptions>;

const VERSION = '2025-11-25';
const INVALID_REQUEST = -32_600;
const METHOD_NOT_FOUND = -32_601;

const isId = (id: unknown): id is string | number =>
  typeof id === 'string' || (typeof id === 'number' && Number.isFinite(id));

const failure = (id: unknown, code: number, message: string, status: number): AnsweredMessage => ({
  status,
  body: { jsonrpc: '2.0', id: isId(id) ? id : null, error: { code, message } },
});

/** The error of the envelope; null: it is a request or a notification. */
function envelopeError(body: JsonObject): string | null {
  if (body['jsonrpc'] !== '2.0') return "jsonrpc must be '2.0'";
  if (typeof body['method'] !== 'string' || body['method'] === '') return 'method must be a text';
  const { id } = body;
  return id === undefined || isId(id) ? null : 'id must be a text or a number';
}

/**
 * Answers one JSON-RPC message of MCP as an agent, through every gate: for custom transports and for tests
 * (docs/guide/module.md#messages-without-http). Never rejects for a message.
 * @throws TypeError for an unknown option
 */
export async function answerMessage(
  kernel: Kernel,
  body: unknown,
  agent: Agent,
  options: MessageOptions = {},
): Promise<AnsweredMessage> {
  assertOptions('handle', options, OPTIONS);
  if (Array.isArray(body))
    return failure(null, INVALID_REQUEST, 'Invalid Request: send one message at a time', 400);
  if (!isJsonObject(body))
    return failure(null, INVALID_REQUEST, 'Invalid Request: expected a JSON-RPC object', 400);
  const error = envelopeError(body);
  if (error !== null) return failure(body['id'], INVALID_REQUEST, `Invalid Request: ${error}`, 400);
  const { id, method, params } = body as { id?: string | number; method: string; params?: unknown };
  const correlationId = agent.correlationId ?? sanitizeCorrelationId(options.correlationId);
  const request = new McpRequest(agent, {
    era: 'legacy',
    version: options.version ?? VERSION,
    signal: options.signal ?? new AbortController().signal,
    clientCapabilities: options.clientCapabilities,
    progress: options.progress,
    link: options.link,
    requestId: id,
    correlationId,
  });
  const reply = await kernel.dispatch(method, params, request);
  return wrapReply(id, reply);
}

function wrapReply(id: string | number | undefined, reply: KernelReply): AnsweredMessage {
  if ('accepted' in reply || id === undefined) return { status: 202, body: null };
  if (reply instanceof StreamedResult)
    return failure(id, METHOD_NOT_FOUND, 'Method not found: it needs a stream', 404);
  if ('error' in reply)
    return { status: reply.status, body: { jsonrpc: '2.0', id, error: { ...reply.error } } };
  return { status: 200, body: { jsonrpc: '2.0', id, result: reply.result } };
}
