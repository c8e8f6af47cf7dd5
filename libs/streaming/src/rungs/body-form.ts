import { RPC } from '#dispatcher';
import { errorReply, type Reply } from '../reply.js';
import type { EdgeSettings } from '../edge-options.js';
import type { Rung } from './rung.js';

const LENGTH_REQUIRED = errorReply(411, {
  code: RPC.parseError,
  message:
    'Length Required: Content-Length header is required and Transfer-Encoding: chunked is not accepted',
});
const UNSUPPORTED_MEDIA_TYPE = errorReply(415, {
  code: RPC.parseError,
  message: 'Unsupported Media Type: Content-Type must be application/json',
});

const JSON_TYPE = 'application/json';

export function payloadTooLarge({ maxBodySize }: EdgeSettings): Reply {
  return errorReply(413, {
    code: RPC.parseError,
    message: `Payload Too Large: body exceeds ${maxBodySize} bytes`,
  });
}

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
    Number(headers['content-length'] ?? 0) > settings.maxBodySize ? payloadTooLarge(settings) : null,
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
