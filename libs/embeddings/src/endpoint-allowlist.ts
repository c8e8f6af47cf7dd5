/**
 * Whether an endpoint is one of those an operator allows: the same scheme, host and port, and a path that the allowed
 * one is a prefix of, whole segments only. What is no URL matches nothing.
 * @param allowed null: any
 */
export function isAllowedEndpoint(endpoint: string, allowed: readonly string[] | null): boolean {
  if (allowed === null) return true;
  const url = parsed(endpoint);
  return url !== null && allowed.some((entry) => covers(parsed(entry), url));
}

/** Plain text may only travel inside the machine. */
export function isSafeTransport(endpoint: string): boolean {
  const url = parsed(endpoint);
  if (!url || url.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.has(url.hostname));
}

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '[::1]']);

function covers(allowed: URL | null, url: URL): boolean {
  if (!allowed || allowed.origin !== url.origin || allowed.origin === 'null') return false;
  const prefix = allowed.pathname.replace(/\/+$/, '');
  return url.pathname === prefix || url.pathname.startsWith(`${prefix}/`);
}

function parsed(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}
