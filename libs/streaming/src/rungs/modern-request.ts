import {
  CLIENT_CAPABILITIES_KEY,
  decodeHeaderValue,
  headerMismatch,
  isJsonObject,
  isServedModernVersion,
  knownCapabilities,
  member,
  methodNotFound,
  PROTOCOL_VERSION_KEY,
  type ProtocolFault,
} from '#dispatcher';
import {
  malformedEnvelope,
  malformedMessage,
  refusedByKernel,
  unsupportedVersion,
} from '../http/refusals.js';
import type { Reply } from '../reply.js';
import { headerText } from '../request-headers.js';
import type { Spoken } from '../speech.js';
import { claimedVersion, VERSION_HEADER } from './protocol-era.js';
import type { EdgeParts } from './rung.js';

/** The param that `Mcp-Name` mirrors, by method. */
const NAMED_PARAM: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

function refuse({ message }: Spoken, fault: ProtocolFault): Reply {
  const { code, message: text, data, status } = fault;
  return refusedByKernel(status, { code, message: text, ...(data !== undefined && { data }) }, message.id);
}

/** Stateless revisions go by the id alone. */
function isNotification({ message }: Spoken): boolean {
  return message.id === undefined;
}

/** A rung that needs no HTTP request: it holds on every transport. */
export interface ModernRung {
  readonly name: string;
  readonly check: (spoken: Spoken, edge: Pick<EdgeParts, 'kernel'>) => Reply | null;
}

/** A check of the stateless era; legacy messages pass. */
function modernRung(name: string, check: ModernRung['check']): ModernRung {
  return {
    name,
    check: (exchange, edge) => (exchange.era === 'modern' ? check(exchange, edge) : null),
  };
}

/** JSON-RPC 2.0 to the letter. */
export const modernShape = modernRung('modern-shape', ({ message: { jsonrpc, id } }) => {
  const validId = id === undefined || typeof id === 'string' || Number.isSafeInteger(id);
  if (jsonrpc === '2.0' && validId) return null;
  return malformedMessage(id);
});

/** Every request says which version it speaks and what its client can do. */
export const envelope = modernRung('envelope', (exchange) => {
  const { message } = exchange;
  const meta = member(message.params, '_meta');
  const version = claimedVersion(message);
  const missing = (key: string) => malformedEnvelope(key, message.id);
  if (isNotification(exchange)) {
    if (version !== undefined && typeof version !== 'string') return missing(PROTOCOL_VERSION_KEY);
    exchange.version = version ?? headerText(exchange.headers, VERSION_HEADER) ?? '';
    return null;
  }
  if (typeof version !== 'string') return missing(PROTOCOL_VERSION_KEY);
  const capabilities = member(meta, CLIENT_CAPABILITIES_KEY);
  if (!isJsonObject(capabilities)) return missing(CLIENT_CAPABILITIES_KEY);
  exchange.version = version;
  exchange.clientCapabilities = knownCapabilities(capabilities);
  return null;
});

export const versionHeader = modernRung('version-header', (exchange) => {
  const header = headerText(exchange.headers, VERSION_HEADER);
  if (header === exchange.version || (header === undefined && isNotification(exchange))) return null;
  return refuse(exchange, headerMismatch('MCP-Protocol-Version'));
});

export const methodHeader = modernRung('method-header', (exchange) => {
  const header = headerText(exchange.headers, 'mcp-method');
  if (header === exchange.message.method || (header === undefined && isNotification(exchange))) return null;
  return refuse(exchange, headerMismatch('Mcp-Method'));
});

export const nameHeader = modernRung('name-header', (exchange) => {
  const { method, params } = exchange.message;
  const param = Object.hasOwn(NAMED_PARAM, method) ? NAMED_PARAM[method] : undefined;
  const named = param === undefined ? undefined : member(params, param);
  if (typeof named !== 'string' || isNotification(exchange)) return null;
  const header = exchange.headers['mcp-name'];
  if (typeof header === 'string' && decodeHeaderValue(header) === named) return null;
  return refuse(exchange, headerMismatch('Mcp-Name'));
});

export const servedVersion = modernRung('served-version', (exchange) => {
  const requested = exchange.version;
  if (isServedModernVersion(requested)) return null;
  return unsupportedVersion(requested, exchange.message.id);
});

export const servedMethod = modernRung('served-method', (exchange, { kernel }) => {
  const { method } = exchange.message;
  if (isNotification(exchange) || kernel.serves(method, 'modern', exchange.version)) return null;
  return refuse(exchange, methodNotFound(method));
});
