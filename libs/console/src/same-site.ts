import type { IncomingHttpHeaders } from 'node:http';

/** Required on every request that changes something: forms and links of other pages cannot send it. */
const CONSOLE_HEADER = 'x-parley-console';

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
const CHANGES_NOTHING = new Set(['GET', 'HEAD']);

/**
 * Whether a browser sent the request for another site's page. Programs send none of these headers.
 * @returns why it is refused, or null
 */
export function crossSiteRefusal(headers: IncomingHttpHeaders, verb: string): string | null {
  const { origin, host = '' } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return 'only the console itself may ask this';
  if (origin !== undefined && !isOwnOrigin(origin, host)) return 'only the console itself may ask this';
  if (!CHANGES_NOTHING.has(verb) && headers[CONSOLE_HEADER] !== '1')
    return `a change needs the header ${CONSOLE_HEADER}: 1`;
  return null;
}

/** A proxy may change the scheme, but not the host name. */
function isOwnOrigin(origin: string, host: string): boolean {
  return URL.canParse(origin) && host !== '' && new URL(origin).host === host.trim().toLowerCase();
}

/** Whether the host name always refers to this machine. */
export function isLoopbackName(host: string | undefined): boolean {
  return URL.canParse(`http://${host ?? ''}`) && LOOPBACK.has(new URL(`http://${host}`).hostname);
}
