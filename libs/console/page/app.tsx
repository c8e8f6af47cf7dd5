import type { SignOutAnswer } from '../src/controllers/session.controller.js';
import type { StateAnswer } from '../src/controllers/status.controller.js';
import type { ShownOperator } from '../src/sign-in.js';
import type { ApprovalsAnswer } from '../src/controllers/approvals.controller.js';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { CONSOLE, open, useAddress } from './address.js';
import { announce, Heading, Icon, type IconName, Notice } from './components.js';
import { formatCount } from './formats.js';
import { useApprovalNotifications, useNotifications } from './notifications.js';
import { type Answer, ask, errorText, onSignedOut, Refusal, send, useAnswer } from './server.js';
import { ShortcutHelp, type Shortcuts, useShortcuts } from './shortcuts.js';
import { SignIn } from './sign-in.js';
import { StateStrip, troublesNow, useServiceState } from './state-strip.js';
import { AgentPage } from './views/agent.js';
import { ApprovalsPage } from './views/approvals.js';
import { AuditPage } from './views/audit.js';
import { ChangesPage } from './views/changes.js';
import { ExplainPage } from './views/explain.js';
import { HealthPage } from './views/health.js';
import { forgetLiveCalls, LivePage } from './views/live.js';
import { OverviewPage } from './views/overview.js';
import { PolicyPage } from './views/policy.js';
import { WorkPage } from './views/work.js';

/** Milliseconds between two renewals of a session that is in use. */
const RENEWAL_INTERVAL = 4 * 60_000;
const REFRESH_INTERVAL = 10_000;

/** What is loaded for every page. */
interface Given {
  /** Null for an operator that decides no approvals. */
  readonly pending: Answer<ApprovalsAnswer> | null;
  readonly state: Answer<StateAnswer>;
}

interface Place {
  readonly name: IconName;
  readonly title: string;
  readonly show: (given: Given) => ComponentChildren;
}

const PLACES: readonly Place[] = [
  { name: 'overview', title: 'Overview', show: ({ state }) => <OverviewPage state={state} /> },
  { name: 'approvals', title: 'Approvals', show: ({ pending }) => <ApprovalsPage pending={pending} /> },
  { name: 'changes', title: 'Changes', show: ({ pending }) => <ChangesPage pending={pending} /> },
  { name: 'live', title: 'Live calls', show: () => <LivePage /> },
  { name: 'audit', title: 'Audit', show: () => <AuditPage /> },
  { name: 'policy', title: 'Policy', show: () => <PolicyPage /> },
  { name: 'explain', title: 'Explain a call', show: () => <ExplainPage /> },
  { name: 'work', title: 'Tasks and exports', show: () => <WorkPage /> },
  { name: 'health', title: 'Health', show: ({ state }) => <HealthPage state={state} /> },
];

/** A page that others lead to: it has a subject. */
const AGENT: Place = { name: 'more', title: 'Agent', show: ({ state }) => <AgentPage state={state} /> };

const NOT_FOUND: Place = {
  name: 'more',
  title: 'Not found',
  show: () => (
    <>
      <Heading>Not found</Heading>
      <p class="empty">
        The console has no such page. <a href="#/overview">Go to the overview</a>
      </p>
    </>
  ),
};

type Session =
  { readonly operator: ShownOperator } | { readonly why: string | null; readonly elsewhere: string | null };

/** The pages of this console in this browser have one session. A message says that it is another one now. */
const sessions = new BroadcastChannel(`parley-console-session:${CONSOLE}`);

/** The sign-in, or the console of a signed-in operator. */
export function App() {
  const [session, setSession] = useState<Session | undefined>();
  const begin = (operator: ShownOperator) => {
    forgetLiveCalls();
    setSession({ operator });
  };
  useEffect(() => {
    const restore = () =>
      ask<ShownOperator>('session').then(begin, (error: unknown) => {
        // Whether there is a session is not known: that is another thing than that there is none.
        const isUnknown = error instanceof Refusal && error.status !== 401;
        setSession({ why: isUnknown ? error.message : null, elsewhere: null });
      });
    onSignedOut(() => setSession({ why: 'Sign in again.', elsewhere: null }));
    void restore();
    sessions.addEventListener('message', () => void restore());
  }, []);
  if (!session) return null;
  if ('operator' in session)
    return (
      <Console
        key={`${session.operator.agent} ${session.operator.principal}`}
        operator={session.operator}
        leave={(elsewhere) => {
          sessions.postMessage('over');
          setSession({ why: 'You are signed out.', elsewhere });
        }}
        onExpired={() => setSession({ why: 'Sign in again.', elsewhere: null })}
      />
    );
  const handleSignIn = (operator: ShownOperator) => {
    sessions.postMessage('begun');
    begin(operator);
  };
  return (
    <main id="main" class="alone">
      <p class="brand">
        <Mark /> Parley <span class="quiet">console</span>
      </p>
      <SignIn key={session.why} why={session.why} handleSignIn={handleSignIn} />
      {session.elsewhere !== null && (
        <p class="aside">
          <a href={session.elsewhere}>Sign out at the issuer too</a>
        </p>
      )}
    </main>
  );
}

const Mark = () => (
  <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="7" />
    <path d="M13 25V7h10M19 7v18M13 15a4 4 0 0 1 0-8" />
  </svg>
);

interface ConsoleProps {
  readonly operator: ShownOperator;
  readonly leave: (issuerSignOut: string | null) => void;
  readonly onExpired: () => void;
}

/** Renews the session while somebody uses the page; a page that is only open does not count. */
function useRenewal(onExpired: () => void): void {
  useEffect(() => {
    let renewedAt = Date.now();
    const renewWhenUsed = () => {
      if (Date.now() - renewedAt < RENEWAL_INTERVAL) return;
      renewedAt = Date.now();
      // A renewal that failed for another reason ends nothing: the session is still valid.
      ask('session').catch((error: unknown) => {
        if (error instanceof Refusal && error.status === 401) onExpired();
      });
    };
    const events = ['pointerdown', 'keydown'];
    for (const event of events) document.addEventListener(event, renewWhenUsed, { passive: true });
    return () => events.forEach((event) => document.removeEventListener(event, renewWhenUsed));
  }, []);
}

function Console({ operator, leave, onExpired: expired }: ConsoleProps) {
  const { page } = useAddress();
  const listed = page === '' ? PLACES[0] : PLACES.find(({ name }) => name === page);
  const found = page === 'agent' ? AGENT : listed;
  const place = found ?? NOT_FOUND;
  const main = useRef<HTMLElement>(null);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const notifies = useNotifications();
  const pending = useAnswer<ApprovalsAnswer>(
    operator.approver ? 'api/approvals' : null,
    REFRESH_INTERVAL,
    notifies,
  );
  const state = useServiceState();
  const troubles = troublesNow(state).filter(({ kind }) => kind === 'bad').length;
  const calls = pending.value?.approvals.filter(({ own }) => !own);
  // What was listed before says nothing of now.
  const waiting = pending.error === null ? (calls?.length ?? 0) : 0;
  useApprovalNotifications(calls, () => place.name === 'approvals' && !document.hidden);
  useRenewal(expired);

  useEffect(() => {
    setMenuOpen(false);
    main.current?.querySelector('h1')?.focus();
    scrollTo(0, 0);
  }, [place]);
  const [announced, setAnnounced] = useState(0);
  useEffect(() => {
    if (waiting > announced) announce(`${formatCount(waiting, 'approval')} waiting`);
    setAnnounced(waiting);
  }, [waiting]);
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${place.title} · Parley console`;
  }, [place, waiting]);

  const shortcuts: Shortcuts = {
    '?': { does: 'show these keys', run: () => setHelpOpen(true) },
    '/': {
      does: 'go to the search or the first input',
      run: () => main.current?.querySelector<HTMLElement>('input, select')?.focus(),
    },
    ...Object.fromEntries(
      PLACES.map(({ name, title }, at) => [String(at + 1), { does: title, run: () => open(`#/${name}`) }]),
    ),
  };
  useShortcuts(shortcuts);

  const signOut = () =>
    void send<SignOutAnswer>('DELETE', 'session').then(
      (answer) => leave(answer.issuer_sign_out),
      (error: unknown) => setFailure(errorText(error)),
    );
  return (
    <div class={isMenuOpen ? 'shell menu-open' : 'shell'}>
      <header class="top">
        <a
          class="skip"
          href={`#/${place.name}`}
          onClick={(event) => {
            event.preventDefault();
            main.current?.querySelector('h1')?.focus();
          }}
        >
          Skip to the content
        </a>
        <p class="brand">
          <Mark /> Parley <span class="quiet">console</span>
        </p>
        {/* On narrow screens alone. */}
        {waiting > 0 && (
          <a
            class="waiting-link"
            href="#/approvals"
            aria-label={`${formatCount(waiting, 'approval')} waiting`}
          >
            <Icon name="approvals" />
            <span class="count">{waiting}</span>
          </a>
        )}
        <button
          type="button"
          class="menu-button"
          aria-expanded={isMenuOpen}
          aria-controls="places"
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          <Icon name="menu" /> Menu
        </button>
      </header>
      <div class="side" id="places">
        <nav aria-label="Console">
          <ul>
            {PLACES.map(({ name, title }) => (
              <li key={name}>
                <a href={`#/${name}`} aria-current={name === place.name ? 'page' : undefined}>
                  <Icon name={name} />
                  <span class="place-title">{title}</span>
                  {name === 'approvals' && waiting > 0 && (
                    <span class="count">
                      {waiting}
                      <span class="unseen"> waiting</span>
                    </span>
                  )}
                  {name === 'health' && troubles > 0 && (
                    <span class="count">
                      {troubles}
                      <span class="unseen"> {troubles === 1 ? 'problem' : 'problems'}</span>
                    </span>
                  )}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <footer class="who">
          <p class="name">
            <span>{operator.name ?? operator.agent}</span>
            <span class="quiet">
              {[
                ...(operator.name ? [operator.agent] : []),
                ...(operator.tenant_id === null ? [] : [`tenant ${operator.tenant_id}`]),
              ].join(' · ')}
            </span>
          </p>
          <div class="tools">
            <ThemeSwitch />
            <button
              type="button"
              class="small"
              aria-label="Keys"
              title="Keys"
              onClick={() => setHelpOpen(true)}
            >
              <Icon name="keys" />
            </button>
            <button type="button" class="small" aria-label="Sign out" title="Sign out" onClick={signOut}>
              <Icon name="leave" />
            </button>
          </div>
        </footer>
      </div>
      <main id="main" ref={main} class={`place-${place.name}`}>
        <StateStrip state={state} />
        {failure !== null && <Notice kind="bad">{failure}</Notice>}
        {place.show({ pending: operator.approver ? pending : null, state })}
      </main>
      {isHelpOpen && <ShortcutHelp everywhere={shortcuts} close={() => setHelpOpen(false)} />}
    </div>
  );
}

const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];
const THEME_SETTING = 'parley-console-theme';

function readTheme(): Theme {
  const stored = localStorage.getItem(THEME_SETTING);
  return THEMES.find((theme) => theme === stored) ?? 'system';
}

/** Applies the stored theme; without one the browser's preference counts. */
export function applyTheme(theme: Theme = readTheme()): void {
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}

function ThemeSwitch() {
  const [theme, setTheme] = useState(readTheme());
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] as Theme;
  const change = () => {
    localStorage.setItem(THEME_SETTING, next);
    applyTheme(next);
    setTheme(next);
  };
  return (
    <button
      type="button"
      class="small"
      aria-label={`Colours: ${theme}. Change to ${next}`}
      title={`Colours: ${theme}`}
      onClick={change}
    >
      <Icon name={theme} />
    </button>
  );
}
