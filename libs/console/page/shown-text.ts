import { options, type VNode } from 'preact';
import { cutText, withHiddenWritten } from '../../core/src/text.js';

/** Characters of one text that are shown. */
const MAX_TEXT_LENGTH = 2_000;
/** Characters of one text node. More would stop the browser; a preview of an approval is smaller. */
const MOST_OF_NODE = 200_000;

/** Untrusted text for display: invisible characters are escaped, and what is too long is cut. */
export function cleanText(text: string, most = MAX_TEXT_LENGTH): string {
  const cut = text.length > most ? `${cutText(text, most)}… (${text.length} characters)` : text;
  return withHiddenWritten(cut);
}

/** Attributes that a browser shows or a screen reader reads. */
const READ = ['aria-label', 'title', 'alt', 'placeholder', 'label'];
/** Addresses outside of the console that a link may have. Plain HTTP leads to an issuer on this machine alone. */
const LINKS =
  /^(?:#|blob:|https:\/\/|http:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?(?:[/?#]|$))/;

/** Whether an address is of the console itself: its path, or one below it. */
function isOwn(href: string, path: string): boolean {
  return href.startsWith(path) && ['', '/', '?', '#'].includes(href.charAt(path.length));
}

/**
 * Makes one node safe: every text is escaped, also in attributes that people read; no markup is made from text; no link
 * runs script.
 * @param path of the console
 * @throws TypeError for a node that the page must not have
 */
export function makeSafe(node: VNode, path = '/console'): void {
  const props: unknown = node.props;
  if (typeof node.type === 'function') return;
  if (typeof props === 'string') {
    (node as { props: unknown }).props = cleanText(props, MOST_OF_NODE);
    return;
  }
  if (props === null || typeof props !== 'object') return;
  const attributes = props as Record<string, unknown>;
  if ('dangerouslySetInnerHTML' in attributes || 'innerHTML' in attributes)
    throw new TypeError('the page makes no markup from text');
  const { href } = attributes;
  // A browser writes any value as text, so only text has been checked.
  if (
    href !== undefined &&
    href !== null &&
    !(typeof href === 'string' && (LINKS.test(href) || isOwn(href, path)))
  )
    throw new TypeError('the page has no such link');
  for (const name of READ) {
    const value = attributes[name];
    if (typeof value === 'string') attributes[name] = cleanText(value);
  }
}

/** Applies `makeSafe` to every node that Preact creates. Called once, before the first is rendered. */
export function protectText(path: string): void {
  options.vnode = (node) => makeSafe(node, path);
}
