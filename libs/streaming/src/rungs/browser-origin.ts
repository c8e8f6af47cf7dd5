import { oneLine } from '#audit';
import { CUSTOM_HEADER_MISSING, ORIGIN_NOT_ALLOWED } from '../http/refusals.js';
import type { Rung } from './rung.js';

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
