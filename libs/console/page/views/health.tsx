import type { StateAnswer } from '../../src/controllers/status.controller.js';
import type { ReplicaState, ServiceState } from '../../src/replica-states.js';
import type { ComponentChildren } from 'preact';
import { Badge, DataTable, Facts, Heading, type Kind, Loaded, Notice, Time } from '../components.js';
import { formatBytes, formatCount, formatTime, timeSince } from '../formats.js';
import type { Answer } from '../server.js';
import { cleanText } from '../shown-text.js';
import { findTroubles } from '../troubles.js';

/** How each replica is. */
export function HealthPage({ state }: { readonly state: Answer<StateAnswer> }) {
  return (
    <>
      <Heading>Health</Heading>
      <WhatToDo state={state} />
      <Loaded of={state}>{(value) => <Report state={value} />}</Loaded>
    </>
  );
}

/** Which sections of the runbook are about what is wrong now. */
function WhatToDo({ state }: { readonly state: Answer<StateAnswer> }) {
  const sections = new Set(
    (state.value ? findTroubles(state.value) : []).flatMap(({ runbook }) => runbook ?? []),
  );
  if (sections.size === 0) return null;
  return (
    <Notice kind="busy">
      What to do: {[...sections].join(', ')} in the runbook, <code>docs/operations/runbook.md</code>.
    </Notice>
  );
}

const STATES: Readonly<Record<string, Kind>> = { up: 'good', down: 'bad', buffering: 'busy' };

function Report({ state: { scope, replicas } }: { readonly state: ServiceState }) {
  const own = replicas[0] as ReplicaState;
  const refused = replicas.flatMap(({ policy }) => (policy.last_refused ? [policy.last_refused] : []));
  const [latest] = refused.toSorted((one, other) => (one.at < other.at ? 1 : -1));
  const { policy, streams } = own;
  const states = { ...own.dependencies, ...prefixNames(own.sinks) };
  return (
    <>
      {latest && (
        <Notice kind="bad">
          {`A configuration was refused at ${formatTime(latest.at)}; the one before it is still served.`}
          <ul>
            {latest.faults.map((fault) => (
              <li key={fault}>{cleanText(fault, 500)}</li>
            ))}
          </ul>
        </Notice>
      )}
      {scope === 'replicas' && (
        <>
          <h2>{formatCount(replicas.length, 'replica')}</h2>
          <div class="replicas">
            <DataTable
              caption="Replicas"
              columns={['Replica', 'Host', 'State', 'Policy', 'Loaded', 'Parley', 'Started', 'Memory']}
              figures={[7]}
              rows={replicas.map((one) => [
                `${one.replica}${one === own ? ' (answers you)' : ''}`,
                one.name,
                <StateBadges replica={one} isAsked={own.dependencies['redis'] !== 'down'} />,
                `${one.policy.version} (number ${one.policy.number})`,
                <Time iso={one.policy.loaded_at} />,
                one.version,
                <Time iso={one.started_at} />,
                formatBytes(one.memory_bytes),
              ])}
            />
          </div>
        </>
      )}
      <div class="columns even">
        <section class="panel">
          <h2>Dependencies</h2>
          <Facts
            pairs={
              Object.keys(states).length === 0
                ? [['all', 'within the process']]
                : Object.entries(states).map(([name, one]) => [
                    name,
                    <>
                      <Badge kind={STATES[one] ?? 'plain'}>{one}</Badge>
                      {own.down_since[name] && (
                        <>
                          {' '}
                          since <Time iso={own.down_since[name]} />
                        </>
                      )}
                    </>,
                  ])
            }
          />
        </section>
        <section class="panel">
          <h2>Policy</h2>
          <Facts
            pairs={[
              ['version', policy.version],
              ['loaded', <Time iso={policy.loaded_at} />],
              ['number since the start', policy.number],
              ['access since the one before', describeWidening(policy)],
              ['classes with rules', policy.classes],
              ['agents', policy.agents],
            ]}
          />
        </section>
        {own.suspended.length > 0 && (
          <section class="panel">
            <h2>Suspended agents</h2>
            <Facts
              pairs={own.suspended.map(({ agent, since, by, reason }) => [
                agent,
                <>
                  <Badge kind="bad">suspended</Badge> <Time iso={since} />{' '}
                  <span class="quiet">{`by ${by}: ${cleanText(reason, 500)}`}</span>
                </>,
              ])}
            />
          </section>
        )}
        {own.keys.length > 0 && (
          <section class="panel">
            <h2>Keys that end</h2>
            <Facts
              pairs={own.keys.map(({ name, agents, expires_at, expired }) => [
                name,
                <>
                  <Badge kind={expired ? 'bad' : 'busy'}>{expired ? 'expired' : 'expires'}</Badge>{' '}
                  <Time iso={expires_at} /> <span class="quiet">({agents.join(', ')})</span>
                </>,
              ])}
            />
          </section>
        )}
        <section class="panel">
          <h2>This replica</h2>
          <Facts
            pairs={[
              ['Parley', own.version],
              ['Node', own.node],
              ['replica', `${own.replica} on ${own.name}`],
              [
                'started',
                <>
                  <Time iso={own.started_at} /> <span class="quiet">({timeSince(own.started_at)})</span>
                </>,
              ],
              ['memory', formatBytes(own.memory_bytes)],
              ['shares its state with', scope === 'replicas' ? 'other replicas, over Redis' : 'nobody'],
            ]}
          />
        </section>
        <section class="panel">
          <h2>Streams</h2>
          <Facts
            pairs={[
              ['streamed answers', streams.calls],
              ['listening streams', streams.listening],
              ['open live pages', streams.console],
            ]}
          />
        </section>
      </div>
    </>
  );
}

/** Sinks beside other dependencies. */
const prefixNames = (sinks: ReplicaState['sinks']) =>
  Object.fromEntries(Object.entries(sinks).map(([name, state]) => [`audit sink ${name}`, state]));

function describeWidening({ widened, number }: ReplicaState['policy']): ComponentChildren {
  if (widened === null) return number > 1 ? 'is being compared' : 'no earlier policy is known';
  return widened ? <Badge kind="busy">widened</Badge> : <Badge kind="good">not widened</Badge>;
}

/** @param isAsked false while Redis is down, over which replicas are asked */
function StateBadges({ replica, isAsked }: { readonly replica: ReplicaState; readonly isAsked: boolean }) {
  if (!replica.answered)
    return isAsked ? <Badge kind="bad">does not answer</Badge> : <Badge>not known now</Badge>;
  const states = { ...replica.dependencies, ...prefixNames(replica.sinks) };
  const wrong = Object.entries(states).filter(([, state]) => state !== 'up');
  if (replica.draining) return <Badge kind="busy">draining</Badge>;
  if (wrong.length === 0) return <Badge kind="good">ready</Badge>;
  return (
    <span class="badges">
      {wrong.map(([name, state]) => (
        <Badge key={name} kind={STATES[state] ?? 'plain'}>{`${name} ${state}`}</Badge>
      ))}
    </span>
  );
}
