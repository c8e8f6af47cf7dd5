import { useEffect, useRef, useState } from 'preact/hooks';
import { Dialog } from './components.js';

/** What a key does. */
interface Shortcut {
  readonly does: string;
  readonly run: () => void;
}
export type Shortcuts = Readonly<Record<string, Shortcut>>;

const SETTING = 'parley-console-keys';
const areOn = () => localStorage.getItem(SETTING) !== 'off';

/** The keys of the page that is shown; the shell reads them. */
let ofPage: Shortcuts = {};

/** Keys of one page, beside those of every page. */
export function usePageShortcuts(shortcuts: Shortcuts): void {
  useEffect(() => {
    ofPage = shortcuts;
    return () => void (ofPage = {});
  });
}

/** Keys of one letter. They are off in an input, in a dialog, and for an operator who turned them off. */
export function useShortcuts(everywhere: Shortcuts): void {
  const latest = useRef(everywhere);
  latest.current = everywhere;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
      if (!areOn() || isWriting(event.target)) return;
      const shortcut = ofPage[event.key] ?? latest.current[event.key];
      if (!shortcut) return;
      event.preventDefault();
      shortcut.run();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]');
}

/** All keys, and the switch that turns them off. */
export function ShortcutHelp({ everywhere, close }: { everywhere: Shortcuts; close: () => void }) {
  const [on, setOn] = useState(areOn());
  const change = (wanted: boolean) => {
    localStorage.setItem(SETTING, wanted ? 'on' : 'off');
    setOn(wanted);
  };
  return (
    <Dialog title="Keys" close={close}>
      <dl class="facts keys">
        {Object.entries({ ...everywhere, ...ofPage }).map(([key, { does }]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <p>
        <label class="check">
          <input type="checkbox" checked={on} onChange={(event) => change(event.currentTarget.checked)} />
          Keys of one letter are on
        </label>
      </p>
    </Dialog>
  );
}
