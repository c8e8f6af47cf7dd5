import { el } from '../dom.js';
import { facts, table } from '../table.js';

/** What would come of a call, as the service tells it. */
export interface SimulatedCall {
  readonly agent: string;
  readonly tool: string;
  readonly allowed: boolean;
  readonly asksApproval: boolean;
  readonly passed: readonly { readonly gate: string; readonly subject?: string }[];
  readonly refusal?: {
    readonly code: string;
    readonly gate: string;
    readonly message: string;
    readonly cause?: string;
    readonly opaque?: boolean;
    readonly details?: Readonly<Record<string, unknown>>;
  };
  readonly injected: readonly {
    readonly className: string;
    readonly origin: string;
    readonly where: unknown;
  }[];
  readonly commands: readonly {
    readonly command: string;
    readonly query: Readonly<Record<string, unknown>>;
  }[];
}

/** The verdict first, then how it came about. */
export function describeCall(call: SimulatedCall): HTMLElement {
  const { injected, commands, agent, tool } = call;
  return el(
    'section',
    { class: 'rehearsal', 'aria-label': 'Explanation' },
    verdict(call),
    el('h2', {}, 'Gates, in their order'),
    gates(call),
    injected.length > 0 && el('h2', {}, 'Rows must also meet'),
    injected.length > 0 &&
      table(
        `Limits of ${tool} for ${agent}`,
        ['Class', 'Asked for by', 'Condition'],
        injected.map(({ className, origin, where }) => [className, origin, code(where)]),
      ),
    commands.length > 0 && el('h2', {}, 'The database would be asked'),
    commands.length > 0 &&
      table(
        'Commands to the database',
        ['Command', 'Class', 'With'],
        commands.map(({ command, query: { className, ...query } }) => [
          command,
          String(className),
          code(query),
        ]),
      ),
  );
}

const code = (value: unknown) => el('code', {}, JSON.stringify(value));

function verdict({ allowed, asksApproval, refusal, tool, agent }: SimulatedCall): HTMLElement {
  const words = allowed ? `allowed${asksApproval ? ', once a person approved it' : ''}` : 'refused';
  return el(
    'div',
    { class: `verdict ${allowed ? 'good' : 'bad'}` },
    el('p', { class: 'outcome' }, el('strong', {}, words), ` ${tool} as ${agent}`),
    refusal &&
      facts([
        ['gate', refusal.gate],
        ['code', refusal.code],
        ['the agent is told', refusal.opaque ? 'Invalid params' : refusal.message],
        ...(refusal.cause === undefined ? [] : [['for you alone', refusal.cause] as const]),
        ...Object.entries(refusal.details ?? {}).map(
          ([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)] as const,
        ),
      ]),
  );
}

function gates({ passed, refusal }: SimulatedCall): HTMLElement {
  const step = (gate: string, subject: string, ok: boolean) =>
    el(
      'li',
      { class: ok ? 'passed' : 'stopped' },
      el('span', { class: `badge ${ok ? 'good' : 'bad'}` }, ok ? 'passed' : 'refused'),
      el('span', {}, gate),
      subject !== '' && el('span', { class: 'quiet' }, ` ${subject}`),
    );
  return el(
    'ol',
    { class: 'gates' },
    ...passed.map(({ gate, subject }) => step(gate, subject ?? '', true)),
    refusal && step(refusal.gate, '', false),
  );
}
