import type { ApprovalView } from '#approvals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { CONSOLE, open } from './address.js';
import { announce } from './components.js';
import { formatCount } from './formats.js';
import { cleanText } from './shown-text.js';

/** Of this browser and this console. */
const SETTING = `parley-console-notifications:${CONSOLE}`;
const SETTING_CHANGED = 'parley:notifications';
/** Calls of one look that have notifications of their own; more have one together. */
const MAX_NOTIFICATIONS = 3;
/** Characters of a name. */
const MOST_OF_NAME = 80;

/** Only pages that a browser trusts have them. */
const isAvailable = () => 'Notification' in globalThis;

/** Whether somebody switched them on here, and the browser still permits them. */
const isOn = () =>
  isAvailable() && Notification.permission === 'granted' && localStorage.getItem(SETTING) === 'on';

function set(on: boolean): void {
  if (on) localStorage.setItem(SETTING, 'on');
  else localStorage.removeItem(SETTING);
  dispatchEvent(new Event(SETTING_CHANGED));
}

/** Whether desktop notifications are on in this browser. */
export function useNotifications(): boolean {
  const [on, setOn] = useState(isOn);
  useEffect(() => {
    const handleChange = () => setOn(isOn());
    // Another tab may have changed it.
    for (const event of [SETTING_CHANGED, 'storage']) addEventListener(event, handleChange);
    return () => [SETTING_CHANGED, 'storage'].forEach((event) => removeEventListener(event, handleChange));
  }, []);
  return on;
}

/** Asks the browser for permission only when it is pressed. */
export function NotificationSwitch() {
  const on = useNotifications();
  const [isBlocked, setBlocked] = useState(false);
  if (!isAvailable()) return null;
  const press = async () => {
    if (on) return set(false);
    const permission = await Notification.requestPermission();
    setBlocked(permission === 'denied');
    if (permission !== 'granted') return;
    set(true);
    announce('Desktop notifications are on in this browser');
  };
  return (
    <p class="buttons">
      <button type="button" aria-pressed={on} onClick={() => void press()}>
        {on ? 'Desktop notifications: on' : 'Desktop notifications: off'}
      </button>
      {isBlocked && (
        <span class="quiet" role="status">
          The browser blocks notifications of this page: allow them in its settings.
        </span>
      )}
    </p>
  );
}

/**
 * Shows a notification for each call that began to wait since the last look. Its text goes to the desktop, which others may see
 * and which may keep it: the names of agent and tool alone.
 * @param waiting absent: not known yet
 * @param isSeen whether the page in front shows what waits
 */
export function useApprovalNotifications(
  waiting: readonly ApprovalView[] | undefined,
  isSeen: () => boolean,
): void {
  const on = useNotifications();
  const known = useRef<ReadonlySet<string> | null>(null);
  useEffect(() => {
    if (waiting === undefined) return;
    const before = known.current;
    known.current = new Set(waiting.map(({ id }) => id));
    if (!on || before === null || (isSeen() && document.hasFocus())) return;
    const fresh = waiting.filter(({ id }) => !before.has(id));
    if (fresh.length > MAX_NOTIFICATIONS)
      show(`${formatCount(fresh.length, 'approval')} waiting`, '', 'several');
    else
      for (const { id, tool, requester } of fresh)
        show('An approval waits', describe(tool, requester.agent), id);
  }, [waiting, on]);
}

const describe = (tool: string, agent: string): string =>
  `${cleanText(tool, MOST_OF_NAME)} for ${cleanText(agent, MOST_OF_NAME)}`;

/** @param tag several tabs show one notification of a call */
function show(title: string, body: string, tag: string): void {
  try {
    const notification = new Notification(`Parley: ${title}`, { body, tag: `${CONSOLE} ${tag}` });
    notification.addEventListener('click', () => {
      focus();
      open('#/approvals');
      notification.close();
    });
  } catch {
    // Browsers of phones have no notifications of a page.
  }
}
