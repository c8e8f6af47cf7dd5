import { isJsonObject, RPC } from '#dispatcher';
import { readBody } from '../body-reader.js';
import { NO_BODY } from '../exchange.js';
import { readJson } from '../json-body.js';
import { errorReply } from '../reply.js';
import { payloadTooLarge } from './body-form.js';
import type { Rung } from './rung.js';

const TOO_SLOW = errorReply(
  408,
  { code: RPC.parseError, message: 'Request Timeout: body was not received in time' },
  null,
  { Connection: 'close' },
);
const NOT_JSON = errorReply(400, { code: RPC.parseError, message: 'Parse error: invalid JSON' });
const NOT_A_MESSAGE = errorReply(400, { code: RPC.invalidRequest, message: 'Invalid Request' });

export const body: Rung = {
  name: 'body',
  check: async (exchange, { settings }) => {
    const { maxBodySize, bodyTimeout } = settings;
    const reading = await readBody(exchange.request, maxBodySize, bodyTimeout, (tell) => {
      exchange.onGone = tell;
    });
    if (reading.outcome === 'too-large') return payloadTooLarge(settings);
    if (reading.outcome === 'too-slow') return TOO_SLOW;
    if (reading.outcome === 'gone') return 'gone';
    exchange.body = reading.body;
    return null;
  },
};

export const json: Rung = {
  name: 'json',
  check: (exchange) => {
    const reading = readJson(exchange.body);
    if (!reading.ok) return NOT_JSON;
    exchange.body = NO_BODY;
    exchange.parsed = reading.value;
    return null;
  },
};

/** A request, a notification, or the answer to a request of ours; arrays are none of these. */
export const messageShape: Rung = {
  name: 'message-shape',
  check: (exchange) => {
    const { parsed } = exchange;
    if (!isJsonObject(parsed)) return NOT_A_MESSAGE;
    const { method, id, params, jsonrpc } = parsed;
    const isResponse = !('method' in parsed) && 'id' in parsed && ('result' in parsed || 'error' in parsed);
    if (!isResponse && (typeof method !== 'string' || method === '')) return NOT_A_MESSAGE;
    exchange.message = {
      method: isResponse ? '' : (method as string),
      params,
      id,
      jsonrpc,
      isResponse,
    };
    return null;
  },
};
