import type { SignInMethods } from '../src/oidc-sign-in.js';
import type { ShownOperator } from '../src/sign-in.js';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Field, Notice } from './components.js';
import { ask, errorText, Refusal, send } from './server.js';

const isLoopback = ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname);

/** Codes with which the issuer's sign-in comes back. */
const REFUSED_BY_ISSUER: Readonly<Record<string, string>> = {
  denied: 'The issuer did not sign you in.',
  no_operator: 'You are signed in at the issuer, but no rule makes you an operator of this service.',
  expired: 'The sign-in took too long, or was used before: try again.',
  mismatch: 'The sign-in was begun in another browser: try again here.',
  invalid: 'The answer of the issuer was refused.',
  unavailable: 'The issuer cannot be reached.',
  too_many: 'Too many attempts to sign in: wait a minute.',
  wrong_host: 'Open the console under the host name that its configuration names.',
};

const RETURN = 'parley-console-return';

/** Opens the page again that was asked for before the issuer's sign-in, which returns without it. */
export function restoreAddress(): void {
  const kept = sessionStorage.getItem(RETURN);
  sessionStorage.removeItem(RETURN);
  if (kept?.startsWith('#/') && location.hash === '')
    history.replaceState(null, '', `${location.pathname}${location.search}${kept}`);
}

/** Why the issuer's sign-in failed, once: it is removed from the address. */
function issuerRefusal(): string | null {
  const code = new URLSearchParams(location.search).get('sign_in');
  if (code === null) return null;
  history.replaceState(null, '', `${location.pathname}${location.hash}`);
  return Object.hasOwn(REFUSED_BY_ISSUER, code) ? (REFUSED_BY_ISSUER[code] ?? null) : 'The sign-in failed.';
}

function refusalText(error: unknown): string {
  if (error instanceof Refusal && error.status === 401) return 'This credential is not known.';
  if (error instanceof Refusal && error.status === 403)
    return `This credential is known, but not as an operator's (${error.message}).`;
  return errorText(error) ?? '';
}

/** Requests a credential; it is sent once and not stored. */
export function SignIn({
  why,
  handleSignIn: signedIn,
}: {
  why: string | null;
  handleSignIn: (operator: ShownOperator) => void;
}) {
  const [message, setMessage] = useState<{ text: string; bad: boolean } | null>(() => {
    const refusal = issuerRefusal();
    if (refusal !== null) return { text: refusal, bad: true };
    return why === null ? null : { text: why, bad: false };
  });
  const [methods, setMethods] = useState<SignInMethods>({ key: true, oidc: null });
  const [busy, setBusy] = useState(false);
  const key = useRef<HTMLInputElement>(null);
  const session = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = 'Sign in · Parley console';
    key.current?.focus();
    ask<SignInMethods>('session/methods').then(setMethods, () => undefined);
  }, []);

  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    const value = (input: HTMLInputElement | null) => input?.value.trim() ?? '';
    const [typedKey, typedSession] = [value(key.current), value(session.current)];
    try {
      const credential = {
        ...(typedKey !== '' && { key: typedKey }),
        ...(typedSession !== '' && { session: typedSession }),
      };
      signedIn(await send<ShownOperator>('POST', 'session', credential));
    } catch (error) {
      setMessage({ text: refusalText(error), bad: true });
      setBusy(false);
      key.current?.focus();
    }
  };

  const { oidc } = methods;
  return (
    <div class="sign-in">
      <div class="panel">
        <h1 tabIndex={-1}>Sign in</h1>
        {location.protocol === 'http:' && !isLoopback && (
          <Notice kind="bad">Over plain HTTP a browser keeps no session: open this page over HTTPS.</Notice>
        )}
        {message && <Notice kind={message.bad ? 'bad' : 'plain'}>{message.text}</Notice>}
        {oidc && (
          <>
            <a
              class="button main"
              href={oidc.begin}
              onClick={() => sessionStorage.setItem(RETURN, location.hash)}
            >
              Sign in with {oidc.name}
            </a>
            <p class="or">or with a key</p>
          </>
        )}
        <form onSubmit={(event) => void submit(event)}>
          {/* A password manager keeps the key under this name. */}
          <input type="text" autoComplete="username" value="operator" hidden aria-label="User name" />
          <Field label="API key or access token">
            <input ref={key} type="password" name="key" autoComplete="current-password" spellcheck={false} />
          </Field>
          <details>
            <summary>With a Parse session</summary>
            <Field label="Session token" hint="Alone, or beside a key where an agent requires both.">
              <input ref={session} type="password" name="session" autoComplete="off" spellcheck={false} />
            </Field>
          </details>
          <p class="buttons">
            <button type="submit" class={oidc ? '' : 'main'} disabled={busy}>
              Sign in
            </button>
          </p>
        </form>
      </div>
    </div>
  );
}
