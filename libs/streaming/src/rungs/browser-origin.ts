import { oneLine } from '#audit';
import { RPC } from '#dispatcher';
import { errorReply } from '../reply.js';
import type { Rung } from './rung.js';

const ORIGIN_NOT_ALLOWED = errorReply(403, { code: RPC.parseError, message: 'Origin not allowed' });
const CUSTOM_HEADER_MISSING = errorReply(403, {
  code: RPC.parseError,
  message: 'Required custom header missing or invalid',
});

export const origin: Rung = {
  name: 'origin',
  check: ({ headers }, { settings, log }) => {
    if (settings.origins.permits(headers.origin)) return null;
    log.warn(`[McpEdge] Origin refused: ${oneLine(JSON.stringify(headers.origin))}`);
    return ORIGIN_NOT_ALLOWED;
  },
};

/** A header that no web form can set and that makes a browser ask first. */
export const customHeader: Rung = {
  name: 'custom-header',
  check: ({ headers }, { settings }) => {
    const wanted = settings.customHeader;
    if (!wanted) return null;
    const sent = headers[wanted.name];
    const fits = typeof sent === 'string' && sent !== '' && (wanted.value === null || sent === wanted.value);
    return fits ? null : CUSTOM_HEADER_MISSING;
  },
};
