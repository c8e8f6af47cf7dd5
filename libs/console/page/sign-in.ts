import { el, field, fill, notice, put } from './dom.js';
import { Refusal, tell } from './server.js';

/** Who is signed in, as the service tells it. */
export interface Operator {
  readonly agent: string;
  readonly principal: string;
  readonly tenant_id: string | number | null;
  readonly approver: boolean;
}

const isLoopback = ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname);

/** Asks for a credential once; it is sent and forgotten. */
export function showSignIn(
  root: HTMLElement,
  why: string | null,
  signedIn: (operator: Operator) => void,
): void {
  const key = el('input', {
    type: 'password',
    name: 'key',
    autocomplete: 'current-password',
    spellcheck: 'false',
  });
  const session = el('input', {
    type: 'password',
    name: 'session',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const told = el('div', {});
  if (why !== null) put(told, notice(why));
  const button = el('button', { type: 'submit', class: 'main' }, 'Sign in');
  const submit = async (event: Event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const credential = {
        ...(key.value !== '' && { key: key.value.trim() }),
        ...(session.value !== '' && { session: session.value.trim() }),
      };
      const operator = await tell<Operator>('POST', 'session', credential);
      key.value = '';
      session.value = '';
      signedIn(operator);
    } catch (error) {
      fill(told, notice(wordsFor(error), 'bad'));
      button.disabled = false;
      key.focus();
    }
  };
  fill(
    root,
    el(
      'form',
      { class: 'panel sign-in', submit: (event) => void submit(event) },
      el('h1', { tabindex: -1 }, 'Sign in'),
      location.protocol === 'http:' &&
        !isLoopback &&
        notice('Over plain HTTP a browser keeps no session: open this page over HTTPS.', 'bad'),
      // Whoever keeps the key in a password manager finds it there again.
      el('input', { type: 'text', autocomplete: 'username', value: 'operator', hidden: true }),
      field('API key or access token', key),
      el(
        'details',
        {},
        el('summary', {}, 'With a Parse session'),
        field('Session token', session, 'Alone, or beside a key where an agent asks for both.'),
      ),
      told,
      el('p', { class: 'buttons' }, button),
    ),
  );
  key.focus();
}

function wordsFor(error: unknown): string {
  if (!(error instanceof Refusal)) return 'something of this page failed';
  return error.status === 401 ? 'This credential is not known.' : error.message;
}
