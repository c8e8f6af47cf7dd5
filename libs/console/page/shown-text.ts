import { options, type VNode } from 'preact';

/** Characters that hide, turn around or fake what stands beside them. */
const DECEIVING =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\uffff]/g;

/** Characters of one text that are shown. */
const MOST = 2_000;
/** Characters of one text node. More would stop the browser; a preview of an approval is smaller. */
const MOST_OF_NODE = 200_000;

/** Untrusted text for display: invisible characters are escaped, and what is too long is cut. */
export function shownText(text: string, most = MOST): string {
  const cut = text.length > most ? `${text.slice(0, most)}… (${text.length} characters)` : text;
  return cut.replace(DECEIVING, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(4, '0');
    return `\\u${code}`;
  });
}

/** Attributes that a browser shows or a screen reader reads. */
const READ = ['aria-label', 'title', 'alt', 'placeholder', 'label'];
/** Addresses that a link of the page may have. */
const LINKS = /^(?:#|\/console\b|blob:|https:\/\/)/;

/**
 * Makes one node safe: every text is escaped, also in attributes that people read; no markup is made from text; no link
 * runs script.
 * @throws TypeError for a node that the page must not have
 */
export function makeSafe(node: VNode): void {
  const props: unknown = node.props;
  if (typeof node.type === 'function') return;
  if (typeof props === 'string') {
    (node as { props: unknown }).props = shownText(props, MOST_OF_NODE);
    return;
  }
  if (props === null || typeof props !== 'object') return;
  const attributes = props as Record<string, unknown>;
  if ('dangerouslySetInnerHTML' in attributes || 'innerHTML' in attributes)
    throw new TypeError('the page makes no markup from text');
  const { href } = attributes;
  if (typeof href === 'string' && !LINKS.test(href)) throw new TypeError('the page has no such link');
  for (const name of READ) {
    const value = attributes[name];
    if (typeof value === 'string') attributes[name] = shownText(value);
  }
}

/** Applies `makeSafe` to every node that Preact creates. Called once, before the first is rendered. */
export function protectText(): void {
  options.vnode = makeSafe;
}
