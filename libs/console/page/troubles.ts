import { cutText } from '../../core/src/text.js';
import type { StateAnswer } from '../src/controllers/status.controller.js';
import type { Refusals } from '../src/refusals.js';
import type { ReplicaState } from '../src/replica-states.js';
import type { EndingKey } from '#config';
import { toAddress } from './address.js';
import type { Kind } from './components.js';
import { formatCount, formatTime } from './formats.js';

/** Something that an operator should know on every page. */
export interface Trouble {
  readonly kind: Extract<Kind, 'bad' | 'busy'>;
  readonly text: string;
  /** Where more of it is said. */
  readonly href: string;
  /** The section of the runbook that says what to do. */
  readonly runbook?: string;
}

/** Milliseconds for which a policy that widened access is pointed out. */
const WIDENED_SHOWN = 86_400_000;
/** Replicas that are named; further ones are counted. */
const MAX_NAMED = 3;

/** What is meant, and what follows where it does not answer. */
const DEPENDENCIES: Readonly<Record<string, readonly [name: string, effect: string]>> = {
  mongodb: ['MongoDB', 'calls that read or write rows fail'],
  parse: ['Parse Server', 'calls that read or write rows fail'],
  redis: ['Redis', 'calls are refused and nothing can be decided'],
  queue: ['The queue of tasks', 'no task begins'],
};

function describeDown(dependency: string, at: readonly ReplicaState[]): string {
  const [name, effect] = DEPENDENCIES[dependency] ?? [dependency];
  const [first] = at.flatMap(({ down_since: since }) => since[dependency] ?? []).toSorted();
  return `${name} does not answer${first ? ` since ${formatTime(first)}` : ''}${effect ? `: ${effect}` : ''}`;
}

/** What is wrong with the service, the worst first. */
export function findTroubles(
  { replicas, refusals }: Pick<StateAnswer, 'replicas' | 'refusals'>,
  now = Date.now(),
): readonly Trouble[] {
  /** By its host; with its id where another is on the same host. */
  const toName = ({ name, replica }: ReplicaState) =>
    replicas.some((one) => one.name === name && one.replica !== replica) ? `${name} ${replica}` : name;
  const listReplicas = (some: readonly ReplicaState[]) => {
    const others = some.length - MAX_NAMED;
    return [...some.slice(0, MAX_NAMED).map(toName), ...(others > 0 ? [`${others} more`] : [])].join(', ');
  };
  const present = replicas.filter(({ answered }) => answered);
  /** @param at where it holds; said unless it holds everywhere */
  const withPlace = (text: string, at: readonly ReplicaState[]) =>
    at.length === present.length ? text : `${text} (${listReplicas(at)})`;
  const say = (
    kind: Trouble['kind'],
    text: string,
    at: readonly ReplicaState[],
    runbook?: string,
    href = '#/health',
  ): readonly Trouble[] =>
    at.length === 0 ? [] : [{ kind, text: withPlace(text, at), href, ...(runbook && { runbook }) }];

  const down = collect(present, ({ dependencies }) =>
    Object.entries(dependencies).flatMap(([name, state]) => {
      // The queue is in Redis, and sinks are named below.
      const isSaid = name === 'audit' || (name === 'queue' && dependencies['redis'] === 'down');
      return state === 'down' && !isSaid ? [name] : [];
    }),
  );
  const sinks = (wanted: string) =>
    collect(present, (one) => Object.keys(one.sinks).filter((name) => one.sinks[name] === wanted));
  const keys = new Map(present.flatMap((one) => one.keys.map((key) => [key.name, key])));
  const suspended = new Map(present.flatMap((one) => one.suspended.map((each) => [each.agent, each])));
  const refused = present.filter(({ policy }) => policy.last_refused);
  const first = refused[0]?.policy.last_refused;
  const policies = collect(present, ({ policy }) => [policy.version]);
  const widened = present.filter(
    ({ policy }) => policy.widened === true && now - Date.parse(policy.loaded_at) < WIDENED_SHOWN,
  );
  return [
    ...[...down].flatMap(([name, at]) => say('bad', describeDown(name, at), at, 'ParleyDependencyDown')),
    ...[...sinks('down')].flatMap(([name, at]) =>
      say('bad', `The audit sink ${name} takes no records: calls are refused`, at, 'ParleyAuditSinkDown'),
    ),
    // They are asked over Redis: while it is down nothing is known of them.
    ...(replicas[0]?.dependencies['redis'] === 'down'
      ? []
      : replicas.filter(({ answered }) => !answered)
    ).map((one) => ({
      kind: 'bad' as const,
      text: `The replica ${listReplicas([one])} does not answer`,
      href: '#/health',
      runbook: 'ParleyNotReady',
    })),
    ...(first
      ? say(
          'bad',
          `A configuration was refused at ${formatTime(first.at)}: ${cut(first.faults[0] ?? '')}`,
          refused,
          'ParleyConfigurationRefused',
        )
      : []),
    ...describeRefusals(refusals),
    ...(policies.size > 1
      ? [
          {
            kind: 'busy' as const,
            text: `Replicas serve different policies: ${[...policies]
              .map(([version, at]) => `${version} (${listReplicas(at)})`)
              .join(', ')}`,
            href: '#/health',
            runbook: 'ParleyPoliciesDiffer',
          },
        ]
      : []),
    ...[...sinks('buffering')].flatMap(([name, at]) =>
      say(
        'busy',
        `The audit sink ${name} does not answer: records wait on disk`,
        at,
        'ParleyAuditSinkBuffers',
      ),
    ),
    ...[...suspended.values()].map((one) => ({
      kind: 'busy' as const,
      text: `The agent ${one.agent} is suspended since ${formatTime(one.since)} by ${one.by}`,
      href: '#/policy',
      runbook: 'An agent gone wild',
    })),
    ...[...keys.values()].map((key) => ({
      kind: 'busy' as const,
      text: describeEnd(key, now),
      href: '#/health',
    })),
    ...say(
      'busy',
      `The policy that was loaded at ${formatTime(widened[0]?.policy.loaded_at ?? '')} widened access`,
      widened,
      undefined,
      '#/policy',
    ),
    ...say(
      'busy',
      'Finishing its calls, accepting no new ones',
      present.filter(({ draining }) => draining),
    ),
  ];
}

/** Of all calls, or of the agents whose calls are mostly refused. */
function describeRefusals({ minutes, from, all, agents }: Refusals): readonly Trouble[] {
  // Without figures: what is said is read aloud again where it changes.
  const lately = `in the last ${minutes} minutes were refused or failed`;
  const filters = { outcome: 'failure', from };
  const runbook = 'ParleyManyRefusals';
  const ofAll: readonly Trouble[] = all
    ? [
        {
          kind: 'bad',
          text: `Most of all calls ${lately}${all.gate === null ? '' : `, by the gate ${all.gate} above all`}`,
          href: toAddress('audit', filters),
          runbook,
        },
      ]
    : [];
  // Where it is so of all calls, several agents share a cause.
  const named = all && agents.length > 1 ? [] : agents.slice(0, MAX_NAMED);
  return [
    ...ofAll,
    ...named.map((one) => ({
      kind: 'busy' as const,
      text: `Most of the calls of the agent ${one.name} ${lately}`,
      href: toAddress('agent', { name: one.name }),
      runbook,
    })),
  ];
}

const DAY_LENGTH = 86_400_000;

/** Of a key that ended, or ends soon. */
function describeEnd({ name, agents, expires_at, expired }: EndingKey, now: number): string {
  const whose = `The key ${name} of ${agents.join(', ')}`;
  if (expired) return `${whose} expired at ${formatTime(expires_at)}: its callers are refused`;
  const days = Math.floor((Date.parse(expires_at) - now) / DAY_LENGTH);
  return `${whose} expires ${days < 1 ? `at ${formatTime(expires_at)}` : `in ${formatCount(days, 'day')}`}`;
}

/** Replicas by what each of them has. */
function collect(
  replicas: readonly ReplicaState[],
  read: (replica: ReplicaState) => readonly string[],
): ReadonlyMap<string, readonly ReplicaState[]> {
  const found = new Map<string, ReplicaState[]>();
  for (const replica of replicas)
    for (const name of read(replica)) found.set(name, [...(found.get(name) ?? []), replica]);
  return found;
}

const MAX_FAULT = 120;
const cut = (text: string) => (text.length > MAX_FAULT ? `${cutText(text, MAX_FAULT)}…` : text);
