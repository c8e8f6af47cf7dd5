import { el, fill, heading } from '../dom.js';
import { ask } from '../server.js';
import { names, table } from '../table.js';
import { shownError } from '../shown-error.js';
import { shownTime, timeUntil } from '../times.js';
import type { View } from '../view.js';

interface Owner {
  readonly principal: string;
  readonly tenant: string | number | null;
  readonly agent: string;
}
interface Task {
  readonly tool: string;
  readonly owner: Owner;
  readonly args_keys: readonly string[];
  readonly status: string;
  readonly run: number;
  readonly updated_at: string;
}
interface Export {
  readonly owner: Owner;
  readonly class_name: string;
  readonly format: string;
  readonly columns: readonly string[];
  readonly limit: number | null;
  readonly expires_at: string;
}

/** Calls that go on after their answer, and files that can be fetched. */
export function workView(): View {
  return {
    name: 'work',
    title: 'Tasks and exports',
    async show(root, signal) {
      const tasks = el('div', {});
      const exports = el('div', {});
      fill(
        root,
        heading('Tasks and exports'),
        el('h2', {}, 'Tasks'),
        tasks,
        el('h2', {}, 'Exports'),
        exports,
      );
      await Promise.all([
        shown(tasks, signal, async () =>
          taskTable((await ask<{ tasks: Task[] }>('api/tasks?limit=100', signal)).tasks),
        ),
        shown(exports, signal, async () =>
          exportTable((await ask<{ exports: Export[] }>('api/exports?limit=100', signal)).exports),
        ),
      ]);
    },
  };
}

async function shown(
  place: HTMLElement,
  signal: AbortSignal,
  load: () => Promise<HTMLElement>,
): Promise<void> {
  try {
    fill(place, await load());
  } catch (error) {
    fill(place, shownError(error, signal));
  }
}

const ownerOf = ({ agent, principal, tenant }: Owner) =>
  `${agent} · ${principal}${tenant === null ? '' : ` · ${tenant}`}`;

const STATUS: Readonly<Record<string, string>> = { completed: 'good', failed: 'bad', cancelled: 'plain' };

function taskTable(tasks: readonly Task[]): HTMLElement {
  if (tasks.length === 0) return el('p', { class: 'quiet' }, 'No task is kept.');
  return table(
    'Tasks, the latest first',
    ['Tool', 'Status', 'Of', 'Arguments', 'Run', 'Changed'],
    tasks.map((task) => [
      task.tool,
      el('span', { class: `badge ${STATUS[task.status] ?? 'busy'}` }, task.status.replace('_', ' ')),
      ownerOf(task.owner),
      names(task.args_keys),
      task.run,
      shownTime(task.updated_at),
    ]),
  );
}

function exportTable(exports: readonly Export[]): HTMLElement {
  if (exports.length === 0) return el('p', { class: 'quiet' }, 'No export can be fetched.');
  return table(
    'Exports, the latest first',
    ['Class', 'Format', 'Of', 'Columns', 'Rows', 'Ends in'],
    exports.map((one) => [
      one.class_name,
      one.format,
      ownerOf(one.owner),
      names(one.columns, 'all'),
      one.limit === null ? 'all' : `at most ${one.limit}`,
      timeUntil(one.expires_at),
    ]),
  );
}
