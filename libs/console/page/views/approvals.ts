import { announce, el, field, fill, heading, notice } from '../dom.js';
import { ask, Refusal, tell } from '../server.js';
import { shownJson } from '../shown-text.js';
import { shownError } from '../shown-error.js';
import { timeUntil } from '../times.js';
import type { View } from '../view.js';

interface Case {
  readonly id: string;
  readonly tool: string;
  readonly permission: string;
  readonly requester: { readonly principal: string; readonly agent: string };
  readonly own: boolean;
  readonly expires_at: string;
}
interface Detailed extends Case {
  readonly preview: Readonly<Record<string, unknown>>;
}

const REFRESH = 10_000;
/** Nothing of what is decided upon is cut off: requests are smaller than this. */
const WHOLE = 10_000_000;

/** Calls that wait for a person. */
export function approvalsView(): View {
  return {
    name: 'approvals',
    title: 'Approvals',
    async show(root, signal) {
      const list = el('ul', { class: 'cards' });
      const state = el('p', { class: 'quiet' }, 'asking…');
      const cards = new Map<string, HTMLElement>();
      fill(root, heading('Approvals'), state, list);

      const refresh = async () => {
        try {
          const { approvals } = await ask<{ approvals: readonly Case[] }>('api/approvals', signal);
          const known = new Set(approvals.map(({ id }) => id));
          for (const [id, card] of cards) {
            // A card with an answer on it stays until the place is left.
            if (known.has(id) || card.dataset['decided'] !== undefined) continue;
            card.remove();
            cards.delete(id);
          }
          for (const one of approvals) {
            if (cards.has(one.id)) continue;
            const card = caseCard(one, signal);
            cards.set(one.id, card);
            list.append(card);
          }
          fill(
            state,
            approvals.length === 0 ? 'Nothing waits for a decision.' : `${approvals.length} waiting`,
          );
        } catch (error) {
          if (error instanceof Refusal && error.status === 403)
            fill(
              state,
              notice(
                'Being an operator is not enough: approvals are decided by the agents named in approvals.approvers.',
              ),
            );
          else fill(state, shownError(error, signal));
        }
      };
      await refresh();
      const timer = setInterval(() => void refresh(), REFRESH);
      signal.addEventListener('abort', () => clearInterval(timer));
    },
  };
}

function caseCard(one: Case, signal: AbortSignal): HTMLElement {
  const body = el('div', {});
  const title = `${one.tool} for ${one.requester.agent}`;
  const look = el('button', { type: 'button', 'aria-expanded': 'false' }, 'Look at it');
  const card = el(
    'li',
    { class: 'card' },
    el('h2', {}, one.tool, el('span', { class: 'badge plain' }, one.permission)),
    el(
      'p',
      { class: 'quiet' },
      `asked by ${one.requester.agent} (${one.requester.principal}) · ends in ${timeUntil(one.expires_at)}`,
    ),
    one.own ? notice('This is your own request: somebody else decides it.') : look,
    body,
  );
  look.setAttribute('aria-label', `Look at ${title}`);
  look.addEventListener('click', () => {
    look.setAttribute('aria-expanded', 'true');
    look.disabled = true;
    ask<Detailed>(`api/approvals/${encodeURIComponent(one.id)}`, signal).then(
      (detailed) => {
        fill(body, decision(detailed, card));
        // Where the button stood is what it was pressed for.
        look.remove();
        body.querySelector('pre')?.focus();
      },
      (error: unknown) => {
        look.disabled = false;
        fill(body, shownError(error, signal));
      },
    );
  });
  return card;
}

/** What would happen, and the two answers to it. Nobody decides what they have not seen. */
function decision({ id, tool, preview }: Detailed, card: HTMLElement): HTMLElement {
  const reason = el('input', { type: 'text', maxlength: 500, autocomplete: 'off' });
  const told = el('div', {});
  const decide = async (verdict: 'approve' | 'deny') => {
    for (const button of buttons) button.disabled = true;
    try {
      await tell('POST', `api/approvals/${encodeURIComponent(id)}`, {
        decision: verdict,
        ...(reason.value !== '' && { reason: reason.value }),
      });
      card.dataset['decided'] = verdict;
      const words = verdict === 'approve' ? `${tool} was approved` : `${tool} was denied`;
      const outcome = notice(words, verdict === 'approve' ? 'good' : 'plain');
      outcome.tabIndex = -1;
      fill(form, outcome);
      outcome.focus();
      announce(words);
    } catch (error) {
      for (const button of buttons) button.disabled = false;
      fill(told, shownError(error));
    }
  };
  const buttons = [
    el('button', { type: 'button', class: 'good', click: () => void decide('approve') }, 'Approve'),
    el('button', { type: 'button', class: 'bad', click: () => void decide('deny') }, 'Deny'),
  ];
  const form = el(
    'div',
    { class: 'decision' },
    el('pre', { tabindex: 0, 'aria-label': `What ${tool} would do` }, shownJson(preview, WHOLE)),
    field('Reason, told to the agent', reason),
    el('p', { class: 'buttons' }, ...buttons),
    told,
  );
  return form;
}
