import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/**
 * The headers of a request without those whose original name has an underscore: gateways that fold `X_Key` and
 * `X-Key` together would let a caller overwrite what a trusted proxy set.
 */
export function trustedHeaders(request: IncomingMessage): IncomingHttpHeaders {
  const { rawHeaders, headers } = request;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.includes('_')) return withoutUnderscores(headers);
  }
  return headers;
}

function withoutUnderscores(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.includes('_')));
}

/** A header as one trimmed text; `undefined` when it is absent, blank or repeated as a list. */
export function headerText(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  return text === '' ? undefined : text;
}

/** Whether `Host` was sent more than once; parsed headers show only the first. */
export function namesTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  let seen = false;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length !== 4 || name.toLowerCase() !== 'host') continue;
    if (seen) return true;
    seen = true;
  }
  return false;
}
