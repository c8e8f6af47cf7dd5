import type { PolicyTrial } from '../../src/policy-trial.js';
import { useState } from 'preact/hooks';
import { CONSOLE, toAddress } from '../address.js';
import { announce, Badge, DataTable, Failure, Field, Notice, Time } from '../components.js';
import { formatCount, names } from '../formats.js';
import { send } from '../server.js';
import { cleanText } from '../shown-text.js';
import { ChangesTable } from './changes-table.js';

/** What a policy would change before it is deployed. Nothing of it is stored. */
export function TryPolicy() {
  const [file, setFile] = useState('');
  const [tests, setTests] = useState('');
  const [isRunning, setRunning] = useState(false);
  const [result, setResult] = useState<{ answer?: PolicyTrial; error?: unknown }>({});
  const run = async (event: Event) => {
    event.preventDefault();
    setRunning(true);
    try {
      const answer = await send<PolicyTrial>('POST', 'api/policy/trial', { file, tests });
      setResult({ answer });
      announce(answer.faults.length > 0 ? 'cannot be served' : 'tried');
    } catch (error) {
      setResult({ error });
    } finally {
      setRunning(false);
    }
  };
  return (
    <>
      <form class="panel trial" onSubmit={(event) => void run(event)}>
        <p class="quiet">
          The <code>agents</code> and the <code>policy</code> of a changed file against what is served. All
          other sections stay, no variable and no file is looked up for it, and nothing is stored.{' '}
          <a href={`${CONSOLE}/api/policy/effective`} download>
            Download what is served
          </a>
        </p>
        <TextOfFile label="Changed file (YAML)" text={file} setText={setFile} />
        <TextOfFile label="Its tests (YAML, optional)" text={tests} setText={setTests} />
        <p class="buttons">
          <button type="submit" class="main" disabled={isRunning || file.trim() === ''}>
            {isRunning ? 'Trying…' : 'Try it'}
          </button>
        </p>
      </form>
      <Failure error={result.error} />
      {result.answer && <Trial answer={result.answer} />}
    </>
  );
}

function TextOfFile(props: { label: string; text: string; setText: (text: string) => void }) {
  const { label, text, setText } = props;
  const load = (event: Event) => {
    const [chosen] = (event.currentTarget as HTMLInputElement).files ?? [];
    void chosen?.text().then(setText);
  };
  return (
    <>
      <Field label={label} wide>
        <textarea
          rows={8}
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </Field>
      <input type="file" accept=".yaml,.yml,.json" aria-label={`${label}: choose`} onChange={load} />
    </>
  );
}

function Trial({ answer }: { readonly answer: PolicyTrial }) {
  const { faults, widens, changes, cut, cases, calls, searched, classes_left_out: left } = answer;
  if (faults.length > 0)
    return (
      <section class="trial-result" aria-label="Result of the trial">
        <Notice kind="bad">{`It could not be served: ${formatCount(faults.length, 'error')}.`}</Notice>
        <DataTable
          caption="Errors of the tried file"
          columns={['Where', 'Option', 'What is wrong']}
          rows={faults.map(({ at = '', path, message }) => [at, path, cleanText(message, 500)])}
        />
      </section>
    );
  const failed = cases.filter((one) => one.faults.length > 0);
  return (
    <section class="trial-result" aria-label="Result of the trial">
      <h3>What agents gain and lose</h3>
      <p>{widens ? <Badge kind="busy">widens access</Badge> : <Badge kind="good">widens nothing</Badge>}</p>
      {changes.length === 0 ? (
        <p class="empty">No agent would see anything else than now.</p>
      ) : (
        <ChangesTable caption="What would change" changes={changes} />
      )}
      {cut > 0 && <Notice>{`${formatCount(cut, 'further change')} not shown.`}</Notice>}
      {left > 0 && <Notice>{`${formatCount(left, 'class', 'classes')} not compared.`}</Notice>}
      <h3>Calls of late</h3>
      <Calls calls={calls} searched={searched} />
      {cases.length > 0 && (
        <>
          <h3>Tests</h3>
          <p>
            <Badge kind={failed.length === 0 ? 'good' : 'bad'}>
              {`${cases.length - failed.length} held, ${failed.length} failed`}
            </Badge>
          </p>
          {failed.length > 0 && (
            <DataTable
              caption="Tests that failed"
              columns={['Rule', 'What was found']}
              rows={failed.map((one) => [cleanText(one.rule, 300), cleanText(one.faults.join('; '), 500)])}
            />
          )}
        </>
      )}
    </section>
  );
}

function Calls({ calls, searched }: Pick<PolicyTrial, 'calls' | 'searched'>) {
  const { records, back_to: backTo } = searched;
  if (records === 0) return <p class="empty">No call is recorded yet: there is nothing to compare with.</p>;
  return (
    <>
      <p class="quiet">
        {`Of the latest ${formatCount(records, 'call')}`}
        {backTo !== null && (
          <>
            , since <Time iso={backTo} />
          </>
        )}
        . Compared by agent, tool and class: records hold no arguments.
      </p>
      {calls.length === 0 ? (
        <p class="empty">None would be refused.</p>
      ) : (
        <DataTable
          caption="Recorded calls that would be decided otherwise"
          columns={['Agent', 'Tool', 'Class', 'Calls', 'Last', 'Would']}
          figures={[3]}
          rows={calls.map((call) => [
            call.agent,
            call.tool,
            names([...(call.class_name === null ? [] : [call.class_name]), ...call.joined_classes]),
            <a
              href={toAddress('audit', { agent: call.agent, tool: call.tool, class: call.class_name ?? '' })}
            >
              {call.calls}
            </a>,
            <Time iso={call.last_at} />,
            <Badge kind={call.would === 'be refused' ? 'bad' : 'busy'}>{call.would}</Badge>,
          ])}
        />
      )}
    </>
  );
}
