import { byId, el, fill } from './dom.js';

/** What a key does. */
export interface Shortcut {
  readonly does: string;
  readonly run: () => void;
}

const SETTING = 'parley-console-keys';

/** Keys of one letter. They are off while somebody writes, and for whoever turns them off. */
export class Shortcuts {
  private local: Readonly<Record<string, Shortcut>> = {};
  private isOn = localStorage.getItem(SETTING) !== 'off';

  constructor(private readonly everywhere: Readonly<Record<string, Shortcut>>) {
    document.addEventListener('keydown', (event) => this.press(event));
  }

  /** Keys of the place that is shown. */
  use(local: Readonly<Record<string, Shortcut>>): void {
    this.local = local;
  }

  /** All there are, and the switch. */
  help(): void {
    const dialog = byId('help', HTMLDialogElement);
    const rows = Object.entries({ ...this.everywhere, ...this.local });
    const isOn = el('input', { type: 'checkbox', id: 'keys-on' });
    isOn.checked = this.isOn;
    isOn.addEventListener('change', () => {
      this.isOn = isOn.checked;
      localStorage.setItem(SETTING, this.isOn ? 'on' : 'off');
    });
    fill(
      dialog,
      el('h2', { id: 'help-title' }, 'Keys'),
      el(
        'dl',
        { class: 'facts' },
        ...rows.flatMap(([key, { does }]) => [el('dt', {}, el('kbd', {}, key)), el('dd', {}, does)]),
      ),
      el('p', {}, isOn, ' ', el('label', { for: 'keys-on' }, 'Keys of one letter are on')),
      el(
        'form',
        { method: 'dialog', class: 'buttons' },
        el('button', { type: 'submit', class: 'main' }, 'Close'),
      ),
    );
    if (!dialog.open) dialog.showModal();
  }

  private press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || byId('help', HTMLDialogElement).open) return;
    if (!this.isOn || isWriting(event.target)) return;
    const shortcut = this.local[event.key] ?? this.everywhere[event.key];
    if (!shortcut) return;
    event.preventDefault();
    shortcut.run();
  }
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]');
}
