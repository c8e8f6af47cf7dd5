import { announce, el, field, fill, heading, notice } from '../dom.js';
import { sampleArguments } from '../sample-arguments.js';
import { ask, tell } from '../server.js';
import { shownJson } from '../shown-text.js';
import { shownError } from '../shown-error.js';
import type { View } from '../view.js';
import { describeCall, type SimulatedCall } from './simulated-call.js';

interface Catalogue {
  readonly agents: readonly {
    readonly name: string;
    readonly permissions: string;
    readonly tenant_id: string | number | null;
    readonly asks_user: boolean;
    readonly tools: readonly string[];
  }[];
  readonly tools: readonly {
    readonly name: string;
    readonly description: string;
    readonly input_schema: Readonly<Record<string, unknown>>;
  }[];
}

/** What an agent may do, gate by gate. Nothing runs. */
export function explainView(): View {
  return {
    name: 'explain',
    title: 'What an agent may do',
    async show(root, signal) {
      const below = el('div', {});
      fill(
        root,
        heading('What an agent may do'),
        el(
          'p',
          { class: 'quiet' },
          'The gates of a call, passed for show: nothing runs, and no row is read.',
        ),
        below,
      );
      try {
        fill(below, ...form(await ask<Catalogue>('api/agents', signal)));
      } catch (error) {
        fill(below, shownError(error, signal));
      }
    },
  };
}

function form({ agents, tools }: Catalogue): HTMLElement[] {
  const agent = el(
    'select',
    { id: 'explain-agent' },
    ...agents.map(({ name }) => el('option', { value: name }, name)),
  );
  const tool = el('input', {
    type: 'text',
    id: 'explain-tool',
    list: 'explain-tools',
    autocomplete: 'off',
    spellcheck: 'false',
    required: true,
  });
  const listed = el('datalist', { id: 'explain-tools' });
  const user = el('input', { type: 'text', id: 'explain-user', autocomplete: 'off', spellcheck: 'false' });
  const args = el('textarea', { id: 'explain-args', rows: 8, spellcheck: 'false' }, '{}');
  const about = el('div', { class: 'quiet' });
  const result = el('div', { 'aria-live': 'off' });
  let suggested = '{}';

  const chosen = () => agents.find(({ name }) => name === agent.value);
  const userField = field(
    'User',
    user,
    'Id of the user whose session is rehearsed; empty: one without roles.',
  );
  const agentChanged = () => {
    const known = chosen();
    fill(listed, ...(known?.tools ?? []).map((name) => el('option', { value: name })));
    userField.hidden = known?.asks_user !== true;
    if (tool.value === '')
      tool.value = known?.tools.find((name) => name === 'query_class') ?? known?.tools[0] ?? '';
    toolChanged();
  };
  const toolChanged = () => {
    const known = tools.find(({ name }) => name === tool.value);
    const may = chosen()?.tools.includes(tool.value) === true;
    fill(
      about,
      !may && notice(`${agent.value} is not shown a tool of this name.`),
      known &&
        el(
          'details',
          {},
          el('summary', {}, 'Its description and arguments'),
          el('p', {}, known.description),
          el('pre', { tabindex: 0 }, shownJson(known.input_schema)),
        ),
    );
    // What somebody wrote is not written over.
    if (!known || args.value !== suggested) return;
    suggested = JSON.stringify(sampleArguments(known.input_schema), null, 2);
    args.value = suggested;
  };
  const explain = async (event: Event) => {
    event.preventDefault();
    try {
      const parsed = parsedArguments(args.value);
      if (parsed === null) return fill(result, notice('The arguments must be a JSON object.', 'bad'));
      const told = await tell<SimulatedCall>('POST', 'api/explain', {
        agent: agent.value,
        tool: tool.value,
        args: parsed,
        ...(!userField.hidden && user.value !== '' && { user: user.value }),
      });
      fill(result, describeCall(told));
      announce(told.allowed ? 'allowed' : 'refused');
    } catch (error) {
      fill(result, shownError(error));
    }
  };
  agent.addEventListener('change', agentChanged);
  tool.addEventListener('input', toolChanged);
  agentChanged();
  return [
    el(
      'form',
      { class: 'panel', submit: (event) => void explain(event) },
      el('div', { class: 'pair' }, field('Agent', agent), field('Tool', tool)),
      listed,
      userField,
      about,
      field('Arguments', args),
      el('p', { class: 'buttons' }, el('button', { type: 'submit', class: 'main' }, 'Explain')),
    ),
    result,
  ];
}

function parsedArguments(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}
