import type { ServiceReport } from '../../src/controllers/status.controller.js';
import { Badge, Facts, Heading, Loaded, Notice, Time } from '../components.js';
import { formatBytes, formatTime } from '../formats.js';
import { useAnswer } from '../server.js';

/** How the answering replica is. */
export function HealthPage() {
  const status = useAnswer<ServiceReport>('api/status', 10_000);
  return (
    <>
      <Heading>Health</Heading>
      <Loaded of={status}>{(report) => <Report report={report} />}</Loaded>
    </>
  );
}

function Report({ report }: { readonly report: ServiceReport }) {
  const { policy, streams } = report;
  const dependencies = Object.entries(report.dependencies);
  const down = dependencies.filter(([, state]) => state === 'down').map(([name]) => name);
  return (
    <>
      {down.length > 0 ? (
        <Notice kind="bad">Not ready: {down.join(', ')}</Notice>
      ) : (
        <Notice kind="good">Ready</Notice>
      )}
      {policy.last_refused && (
        <Notice kind="bad">
          {`A configuration was refused at ${formatTime(policy.last_refused.at)}: ${policy.last_refused.faults.join('; ')}`}
        </Notice>
      )}
      <div class="columns">
        <section class="panel">
          <h2>Dependencies</h2>
          <Facts
            pairs={
              dependencies.length === 0
                ? [['all', 'within the process']]
                : dependencies.map(([name, state]) => [
                    name,
                    <Badge kind={state === 'up' ? 'good' : 'bad'}>{state}</Badge>,
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
              ['classes with rules', policy.classes],
              ['agents', policy.agents],
            ]}
          />
        </section>
        <section class="panel">
          <h2>This replica</h2>
          <Facts
            pairs={[
              ['Parley', report.version],
              ['Node', report.node],
              ['replica', report.replica],
              ['started', <Time iso={report.started_at} />],
              ['memory', formatBytes(report.memory_bytes)],
              [
                'shares its state with',
                report.shared_state === 'replicas' ? 'other replicas, over Redis' : 'nobody',
              ],
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
