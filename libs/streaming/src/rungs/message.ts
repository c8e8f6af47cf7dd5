import { remoteNetwork } from '#auth';
import { onceClosed } from '../connection-turns.js';
import { readBody } from '../body-reader.js';
import { NO_BODY } from '../exchange.js';
import { readJson } from '../json-body.js';
import { readMessage } from '../message.js';
import { BODY_TIMED_OUT, NO_ROOM, NOT_A_MESSAGE, NOT_JSON, payloadTooLarge } from '../http/refusals.js';
import { mayHoldBatch, readBatch } from './batch.js';
import type { Rung } from './rung.js';

export const body: Rung = {
  name: 'body',
  check: async (exchange, { settings, pendingBodies }) => {
    const { maxBodySize, bodyTimeout } = settings;
    const held = pendingBodies.begin(remoteNetwork(exchange.request.socket.remoteAddress));
    onceClosed(exchange.request, exchange.response, () => held.release());
    const reading = await readBody(
      exchange.request,
      maxBodySize,
      bodyTimeout,
      (bytes) => held.grow(bytes),
      (tell) => {
        exchange.onGone = tell;
      },
    );
    if (reading.outcome === 'no-room') return NO_ROOM;
    if (reading.outcome === 'too-large') return payloadTooLarge('body', maxBodySize);
    if (reading.outcome === 'too-slow') return BODY_TIMED_OUT;
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

/** A request, a notification, the answer to a request of ours, or where a session may be of that revision several of them. */
export const messageShape: Rung = {
  name: 'message-shape',
  check: (exchange, { settings }) => {
    const { parsed } = exchange;
    if (Array.isArray(parsed)) {
      const batch = mayHoldBatch(exchange) ? readBatch(parsed, settings.maxBatchSize) : null;
      if (!batch) return NOT_A_MESSAGE;
      exchange.batch = batch;
      return null;
    }
    const message = readMessage(parsed);
    if (!message) return NOT_A_MESSAGE;
    exchange.message = message;
    return null;
  },
};
