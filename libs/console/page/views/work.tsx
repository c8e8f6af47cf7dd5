import type { ListedExport } from '#exports';
import type { ListedTask } from '#tasks';
import { Badge, DataTable, Heading, type Kind, Loaded, Time } from '../components.js';
import { names, timeUntil } from '../formats.js';
import { useAnswer } from '../server.js';

const STATUS: Readonly<Record<string, Kind>> = { completed: 'good', failed: 'bad', cancelled: 'plain' };
const REFRESH_INTERVAL = 15_000;

/** Calls that go on after their answer, and files that can be fetched. */
export function WorkPage() {
  const tasks = useAnswer<{ tasks: readonly ListedTask[] }>('api/tasks?limit=100', REFRESH_INTERVAL);
  const exports = useAnswer<{ exports: readonly ListedExport[] }>('api/exports?limit=100', REFRESH_INTERVAL);
  const formatOwner = ({ agent, principal, tenant }: ListedTask['owner']) => [
    agent,
    principal,
    tenant === null ? '' : String(tenant),
  ];
  return (
    <>
      <Heading>Tasks and exports</Heading>
      <h2>Tasks</h2>
      <Loaded of={tasks}>
        {(answer) =>
          answer.tasks.length === 0 ? (
            <p class="empty">
              No task is kept. Calls of tools that declare it become tasks, and are listed here while and
              after they run.
            </p>
          ) : (
            <DataTable
              caption="Tasks, the latest first"
              columns={['Tool', 'Status', 'Agent', 'Principal', 'Tenant', 'Arguments', 'Run', 'Changed']}
              figures={[6]}
              rows={answer.tasks.map((task) => [
                task.tool,
                <Badge kind={STATUS[task.status] ?? 'busy'}>{task.status.replace('_', ' ')}</Badge>,
                ...formatOwner(task.owner),
                names(task.args_keys),
                task.run,
                <Time iso={task.updated_at} />,
              ])}
            />
          )
        }
      </Loaded>
      <h2>Exports</h2>
      <Loaded of={exports}>
        {(answer) =>
          answer.exports.length === 0 ? (
            <p class="empty">
              No export can be fetched. <code>export_data</code> with <code>delivery: resource</code> makes
              one.
            </p>
          ) : (
            <DataTable
              caption="Exports, the latest first"
              columns={['Class', 'Format', 'Agent', 'Principal', 'Tenant', 'Columns', 'Rows', 'Ends in']}
              figures={[6]}
              rows={answer.exports.map((one) => [
                one.class_name,
                one.format,
                ...formatOwner(one.owner),
                names(one.columns, 'all'),
                one.limit === null ? 'all' : `at most ${one.limit}`,
                timeUntil(one.expires_at),
              ])}
            />
          )
        }
      </Loaded>
    </>
  );
}
