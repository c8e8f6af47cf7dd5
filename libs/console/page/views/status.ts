import type { ServiceReport } from '../../src/controllers/status.controller.js';
import { el, fill, heading, notice } from '../dom.js';
import { ask } from '../server.js';
import { facts } from '../table.js';
import { shownError } from '../shown-error.js';
import { shownBytes, shownTime } from '../times.js';
import type { View } from '../view.js';

const REFRESH = 10_000;

/** How the replica is that answers. */
export function statusView(): View {
  return {
    name: 'status',
    title: 'Health',
    async show(root, signal) {
      const below = el('div', {});
      fill(root, heading('Health'), below);
      const refresh = async () => {
        try {
          fill(below, ...report(await ask<ServiceReport>('api/status', signal)));
        } catch (error) {
          fill(below, shownError(error, signal));
        }
      };
      await refresh();
      const timer = setInterval(() => void refresh(), REFRESH);
      signal.addEventListener('abort', () => clearInterval(timer));
    },
  };
}

function report(told: ServiceReport): HTMLElement[] {
  const dependencies = Object.entries(told.dependencies);
  const down = dependencies.filter(([, state]) => state === 'down').map(([name]) => name);
  const { policy, streams } = told;
  return [
    down.length > 0 ? notice(`Not ready: ${down.join(', ')}`, 'bad') : notice('Ready', 'good'),
    ...(policy.last_refused
      ? [
          notice(
            `A policy was refused at ${shownTime(policy.last_refused.at)}: ${policy.last_refused.faults.join('; ')}`,
            'bad',
          ),
        ]
      : []),
    el('h2', {}, 'Dependencies'),
    facts(
      dependencies.length > 0
        ? dependencies.map(([name, state]) => [name, badge(state)] as const)
        : [['all', 'within the process']],
    ),
    el('h2', {}, 'Policy'),
    facts([
      ['version', policy.version],
      ['read', `${shownTime(policy.loaded_at)} (number ${policy.edition} since the start)`],
      ['classes with rules', policy.classes],
      ['agents', policy.agents],
    ]),
    el('h2', {}, 'This replica'),
    facts([
      ['Parley', told.version],
      ['Node', told.node],
      ['replica', told.replica],
      ['started', shownTime(told.started_at)],
      ['memory', shownBytes(told.memory_bytes)],
      ['shares its state with', told.shared_state === 'replicas' ? 'other replicas, over Redis' : 'nobody'],
      ['streamed answers', streams.calls],
      ['listening streams', streams.listening],
      ['pages that watch', streams.console],
    ]),
  ];
}

const badge = (state: 'up' | 'down') =>
  el('span', { class: `badge ${state === 'up' ? 'good' : 'bad'}` }, state);
