import type { IncomingHttpHeaders } from 'node:http';

/** What every request that changes something carries: no form and no link of another page can send it. */
const CONSOLE_HEADER = 'x-parley-console';

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
const CHANGES_NOTHING = new Set(['GET', 'HEAD']);

/**
 * Whether a browser sent it on behalf of a page that is not ours. Programs send neither header and are not concerned.
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

/** A proxy may have taken the scheme away, never the name. */
function isOwnOrigin(origin: string, host: string): boolean {
  return URL.canParse(origin) && host !== '' && new URL(origin).host === host.trim().toLowerCase();
}

/** Whether the browser talks to this machine by a name that cannot leave it. */
export function isLoopbackName(host: string | undefined): boolean {
  return URL.canParse(`http://${host ?? ''}`) && LOOPBACK.has(new URL(`http://${host}`).hostname);
}
