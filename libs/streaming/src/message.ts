import { isJsonObject } from '#dispatcher';

/** A JSON-RPC message whose outer form has been checked. */
export interface Message {
  /** Empty for a posted response. */
  readonly method: string;
  readonly params: unknown;
  /** As sent: text, a number, a truth value or null; `undefined` when the message has none. */
  readonly id: unknown;
  readonly jsonrpc: unknown;
  readonly isResponse: boolean;
  /** Of a posted response. */
  readonly result?: unknown;
  readonly error?: unknown;
}

export const NO_MESSAGE: Message = {
  method: '',
  params: undefined,
  id: undefined,
  jsonrpc: undefined,
  isResponse: false,
};

/** A request, a notification, or the answer to a request of ours; `null` for anything else. */
export function readMessage(value: unknown): Message | null {
  if (!isJsonObject(value)) return null;
  const { method, id, params, jsonrpc } = value;
  // An object is no name of a request: neither for the client that would look its answer up, nor for a cancellation.
  if (typeof id === 'object' && id !== null) return null;
  if (!('method' in value) && 'id' in value && ('result' in value || 'error' in value)) {
    const { result, error } = value;
    return { method: '', params, id, jsonrpc, isResponse: true, result, error };
  }
  if (typeof method !== 'string' || method === '') return null;
  return { method, params, id, jsonrpc, isResponse: false };
}

/** Whether nobody waits for an answer. */
export function isNotification({ method, id }: Message): boolean {
  return method.startsWith('notifications/') && (id === undefined || id === null);
}
