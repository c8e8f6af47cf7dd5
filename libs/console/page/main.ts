import { byId, el, fill } from './dom.js';
import { ask, tell } from './server.js';
import { Shortcuts } from './shortcuts.js';
import { type Operator, showSignIn } from './sign-in.js';
import { onSignedOut, shownError } from './shown-error.js';
import type { View } from './view.js';
import { approvalsView } from './views/approvals.js';
import { auditView } from './views/audit.js';
import { explainView } from './views/explain.js';
import { liveView } from './views/live.js';
import { policyView } from './views/policy.js';
import { statusView } from './views/status.js';
import { workView } from './views/work.js';

/** Milliseconds between two words that somebody is at the page. */
const AT_THE_PAGE = 4 * 60_000;

const main = byId('main', HTMLElement);
const nav = byId('places', HTMLElement);
const who = byId('who', HTMLElement);

let views: readonly View[] = [];
let operator: Operator | null = null;
let leaving = new AbortController();

const shortcuts = new Shortcuts({
  '?': { does: 'these keys', run: () => shortcuts.help() },
  '/': { does: 'go to the search', run: () => main.querySelector<HTMLElement>('input')?.focus() },
  ...Object.fromEntries(
    ['Live calls', 'Approvals', 'What an agent may do', 'Policy', 'Audit', 'Tasks and exports', 'Health'].map(
      (title, at) => [String(at + 1), { does: title, run: () => go(at) }],
    ),
  ),
});

function go(at: number): void {
  const view = views[at];
  if (view) location.hash = `#/${view.name}`;
}

/** The place that the address names; the first when it names none. */
function current(): View | undefined {
  return views.find(({ name }) => location.hash === `#/${name}`) ?? views[0];
}

function show(focus: boolean): void {
  const view = current();
  if (!operator || !view) return;
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  document.title = `${view.title} · Parley console`;
  for (const link of nav.querySelectorAll('a')) {
    const isHere = link.hash === `#/${view.name}`;
    if (isHere) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
    if (isHere) link.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }
  shortcuts.use(view.keys ?? {});
  main.className = `place-${view.name}`;
  Promise.resolve(view.show(main, signal)).catch((error: unknown) => fill(main, shownError(error, signal)));
  if (focus) main.querySelector<HTMLElement>('h1')?.focus();
}

function enter(known: Operator): void {
  operator = known;
  views = [liveView(), approvalsView(), explainView(), policyView(), auditView(), workView(), statusView()];
  const entries = views.map(({ name, title }) => el('li', {}, el('a', { href: `#/${name}` }, title)));
  fill(nav, el('ul', {}, ...entries));
  nav.hidden = false;
  fill(
    who,
    el('span', { class: 'quiet name' }, known.agent),
    el(
      'button',
      { type: 'button', class: 'small', 'aria-label': 'Keys', click: () => shortcuts.help() },
      '?',
    ),
    el('button', { type: 'button', class: 'small', click: () => void leave() }, 'Sign out'),
  );
  show(true);
}

function signIn(why: string | null): void {
  operator = null;
  leaving.abort();
  views = [];
  nav.hidden = true;
  fill(nav);
  fill(who);
  shortcuts.use({});
  main.className = '';
  document.title = 'Sign in · Parley console';
  showSignIn(main, why, enter);
}

async function leave(): Promise<void> {
  await tell('DELETE', 'session').then(
    () => signIn('You are signed out.'),
    (error: unknown) => fill(main, shownError(error) ?? ''),
  );
}

/** A session lasts as long as somebody is there; looking at a page that nobody touches does not count. */
function renewWhileUsed(): void {
  let renewedAt = Date.now();
  const used = () => {
    if (!operator || Date.now() - renewedAt < AT_THE_PAGE) return;
    renewedAt = Date.now();
    ask('session').catch(() => signIn('Sign in again.'));
  };
  for (const event of ['pointerdown', 'keydown']) document.addEventListener(event, used, { passive: true });
}

onSignedOut(() => {
  if (operator) signIn('Sign in again.');
});
window.addEventListener('hashchange', () => show(true));
renewWhileUsed();
ask<Operator>('session').then(enter, () => signIn(null));
