import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/**
 * The headers of a request without those whose original name has an underscore: gateways that fold `X_Key` and
 * `X-Key` together would let a caller overwrite what a trusted proxy set. Node shows only the first of several `Authorization`
 * headers; here they are one text, which is nobody's credential.
 */
export function trustedHeaders(request: IncomingMessage): IncomingHttpHeaders {
  const { rawHeaders, headers } = request;
  let underscored = false;
  let authorizations = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.includes('_')) underscored = true;
    if (name.length === AUTHORIZATION.length && name.toLowerCase() === AUTHORIZATION) authorizations += 1;
  }
  const trusted = underscored ? withoutUnderscores(headers) : headers;
  return authorizations < 2 ? trusted : { ...trusted, [AUTHORIZATION]: allOf(rawHeaders, AUTHORIZATION) };
}

const AUTHORIZATION = 'authorization';

function allOf(rawHeaders: readonly string[], wanted: string): string {
  const values = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === wanted);
  return values.join(', ');
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
