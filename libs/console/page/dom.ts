import { shownText } from './shown-text.js';

type Child = Node | string | number | null | undefined | false;
type Attributes = Readonly<Record<string, string | number | boolean | ((event: Event) => void)>>;

/**
 * Makes an element. Text becomes text and never markup; an attribute that is a function hears the event of its name.
 */
export function el<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key, value);
    else if (value === true) element.setAttribute(key, '');
    else if (value !== false) element.setAttribute(key, String(value));
  }
  put(element, ...children);
  return element;
}

/** Adds children; whatever is not an element is shown as text of a stranger. */
export function put(parent: Element, ...children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : shownText(String(child)));
  }
}

/** In place of everything that was there. */
export function fill(parent: Element, ...children: readonly Child[]): void {
  parent.replaceChildren();
  put(parent, ...children);
}

export function byId<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

/** Told to whoever cannot see the page, without taking the focus. */
export function announce(text: string): void {
  byId('told', HTMLElement).textContent = shownText(text, 200);
}

/** A title that a new view begins with, and that gets the focus. */
export function heading(text: string, ...aside: readonly Child[]): HTMLElement {
  return el('div', { class: 'title' }, el('h1', { tabindex: -1 }, text), ...aside);
}

export function notice(text: string, kind: 'bad' | 'good' | 'plain' = 'plain'): HTMLElement {
  return el('p', { class: `notice ${kind}`, ...(kind === 'bad' && { role: 'alert' }) }, text);
}

export function field(label: string, input: HTMLElement, hint?: string): HTMLElement {
  const id = input.id === '' ? `field-${Math.random().toString(36).slice(2)}` : input.id;
  input.id = id;
  if (hint !== undefined) input.setAttribute('aria-describedby', `${id}-hint`);
  return el(
    'div',
    { class: 'field' },
    el('label', { for: id }, label),
    input,
    hint !== undefined && el('p', { class: 'hint', id: `${id}-hint` }, hint),
  );
}
