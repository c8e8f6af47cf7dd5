import type { IncomingHttpHeaders } from 'node:http';
import { isLoopbackName } from './same-site.js';

/** With the prefix a browser takes it over TLS alone. */
function nameFor(host: string | undefined): string {
  return isLoopbackName(host) ? 'parley-console' : '__Secure-parley-console';
}

/** Characters: with name and attributes, what every browser keeps. */
const MAX_VALUE = 3_800;

/** Whether a cookie can hold it. */
export const fitsCookie = (value: string): boolean => value.length <= MAX_VALUE;

/** The session that a browser carries; `undefined` also when it carries two, because which is ours cannot be told. */
export function presentedCookie({ cookie, host }: IncomingHttpHeaders): string | undefined {
  const prefix = `${nameFor(host)}=`;
  const found = (cookie ?? '').split(';').flatMap((pair) => {
    const text = pair.trim();
    return text.startsWith(prefix) ? [text.slice(prefix.length)] : [];
  });
  return found.length === 1 && found[0] !== '' ? found[0] : undefined;
}

/** @param seconds that the browser keeps it; 0 makes it forget */
export function setCookie(value: string, seconds: number, { host }: IncomingHttpHeaders): string {
  const secure = isLoopbackName(host) ? '' : '; Secure';
  return `${nameFor(host)}=${value}; Path=/console; HttpOnly; SameSite=Strict; Max-Age=${seconds}${secure}`;
}
