import { LENGTH_REQUIRED, payloadTooLarge, UNSUPPORTED_MEDIA_TYPE } from '../http/refusals.js';
import type { Rung } from './rung.js';

const JSON_TYPE = 'application/json';

/** A body without a declared length cannot be refused before it is read. */
export const lengthRequired: Rung = {
  name: 'length-required',
  check: ({ headers }, { settings }) => {
    if (!settings.requireContentLength) return null;
    const declared = headers['content-length'] !== undefined && headers['transfer-encoding'] === undefined;
    return declared ? null : LENGTH_REQUIRED;
  },
};

export const declaredLength: Rung = {
  name: 'declared-length',
  check: ({ headers }, { settings }) =>
    Number(headers['content-length'] ?? 0) > settings.maxBodySize
      ? payloadTooLarge('body', settings.maxBodySize)
      : null,
};

export const mediaType: Rung = {
  name: 'media-type',
  check: ({ headers }) => {
    const type = headers['content-type'] ?? '';
    if (type === JSON_TYPE) return null;
    const semicolon = type.indexOf(';');
    const bare = semicolon < 0 ? type : type.slice(0, semicolon);
    return bare.trim().toLowerCase() === JSON_TYPE ? null : UNSUPPORTED_MEDIA_TYPE;
  },
};
