import type { SimulatedCall } from '#dispatcher';
import type { ListedClasses, SimulationCatalogue } from '../../src/controllers/explain.controller.js';
import { readJson } from '../../../core/src/read-json.js';
import { useRef, useState } from 'preact/hooks';
import { toAddress, replaceAddress, useAddress } from '../address.js';
import {
  announce,
  Badge,
  DataTable,
  Facts,
  Failure,
  Field,
  Heading,
  Loaded,
  Notice,
  Select,
  TextField,
} from '../components.js';
import { valueText } from '../formats.js';
import { type Arguments, sampleArguments, SchemaForm } from '../schema-form.js';
import { send, useAnswer } from '../server.js';

/** What an agent may do, gate by gate. No tool runs. */
export function ExplainPage() {
  const catalogue = useAnswer<SimulationCatalogue>('api/agents');
  return (
    <>
      <Heading>Explain a call</Heading>
      <p class="quiet">
        What an agent may do: the gates of a call are evaluated. No tool runs, and no row is read.
      </p>
      <Loaded of={catalogue}>{(value) => <ExplainForm catalogue={value} />}</Loaded>
    </>
  );
}

/** @returns null for a text that is no JSON object */
function parseArguments(text: string): Arguments | null {
  const reading = readJson(text);
  const value = reading.ok ? reading.value : null;
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Arguments) : null;
}

/** What is wrong with a text that is none. */
function whyNot(text: string): string {
  const reading = readJson(text);
  const isNone = reading.ok || reading.fault === 'syntax';
  return isNone ? 'The arguments must be a JSON object.' : `The arguments cannot be read: ${reading.why}.`;
}

const asText = (args: Arguments) => JSON.stringify(args, null, 2);

function ExplainForm({ catalogue: { agents, tools } }: { readonly catalogue: SimulationCatalogue }) {
  const { filters } = useAddress();
  const agent = agents.find(({ name }) => name === filters.get('agent')) ?? agents[0];
  const usual = agent?.tools.includes('query_class') ? 'query_class' : agent?.tools[0];
  const toolName = filters.get('tool') ?? usual ?? '';
  const tool = tools.find(({ name }) => name === toolName);
  const [text, setText] = useState<string | null>(null);
  const [user, setUser] = useState('');
  const [result, setResult] = useState<{ call?: SimulatedCall; error?: unknown }>({});
  const [isBusy, setBusy] = useState(false);
  const region = useRef<HTMLDivElement>(null);
  const classes = useAnswer<ListedClasses>(
    agent ? `api/agents/${encodeURIComponent(agent.name)}/classes?limit=200` : null,
  );

  // The first class is a beginning that works.
  const given = filters.get('class') ?? classes.value?.classes[0]?.name ?? '';
  const sample = tool ? sampleArguments(tool.input_schema) : {};
  const shown =
    text ?? asText('class_name' in sample && given !== '' ? { ...sample, class_name: given } : sample);
  const args = parseArguments(shown);
  const choose = (changed: { agent?: string; tool?: string }) =>
    replaceAddress(
      toAddress('explain', {
        agent: agent?.name,
        tool: toolName,
        class: filters.get('class') ?? '',
        ...changed,
      }),
    );

  const explain = async (event: Event) => {
    event.preventDefault();
    if (args === null || !agent) return setResult({});
    if (isBusy) return;
    setBusy(true);
    try {
      const call = await send<SimulatedCall>('POST', 'api/explain', {
        agent: agent.name,
        tool: toolName,
        args,
        ...(agent.asks_user && user !== '' && { user }),
      });
      setResult({ call });
      announce(call.allowed ? 'allowed' : 'refused');
    } catch (error) {
      setResult({ error });
    } finally {
      setBusy(false);
    }
  };
  const own = agent?.tools ?? [];
  const others = tools.map(({ name }) => name).filter((name) => !own.includes(name));
  return (
    <>
      <form class="panel" onSubmit={(event) => void explain(event)}>
        <div class="grid">
          <Select
            label="Agent"
            value={agent?.name ?? ''}
            options={agents.map(({ name, permissions }) => [name, `${name} (${permissions})`] as const)}
            change={(name) => choose({ agent: name })}
          />
          <Field label="Tool">
            <select
              value={toolName}
              onChange={(event) => {
                setText(null);
                choose({ tool: event.currentTarget.value });
              }}
            >
              {own.length > 0 && (
                <optgroup label={`Tools of ${agent?.name ?? ''}`}>
                  {own.map((name) => (
                    <option key={name} value={name} selected={name === toolName}>
                      {name}
                    </option>
                  ))}
                </optgroup>
              )}
              {others.length > 0 && (
                <optgroup label="Tools of other agents">
                  {others.map((name) => (
                    <option key={name} value={name} selected={name === toolName}>
                      {name}
                    </option>
                  ))}
                </optgroup>
              )}
            </select>
          </Field>
          {agent?.asks_user && (
            <TextField
              label="User"
              hint="Id of the user whose session is simulated; empty: one without roles."
              value={user}
              onInput={(event) => setUser(event.currentTarget.value)}
            />
          )}
        </div>
        {agent && !own.includes(toolName) && <Notice>{`${agent.name} is not offered this tool.`}</Notice>}
        {tool && <p class="quiet about">{tool.description}</p>}
        <div class="beside">
          <fieldset disabled={args === null}>
            <legend>Arguments</legend>
            {args === null ? (
              <p class="quiet">The form continues when the JSON is an object again.</p>
            ) : agent && classes.value === undefined && !classes.error ? (
              // An input that becomes a list under one's hands would lose the focus.
              <p class="quiet">Loading…</p>
            ) : (
              <>
                {/* Without them the name is typed. */}
                {'class_name' in sample && <Failure error={classes.error} retry={classes.reload} />}
                <SchemaForm
                  key={toolName}
                  schema={tool?.input_schema ?? {}}
                  args={args}
                  classes={classes.value?.classes.map(({ name }) => name) ?? []}
                  change={(changed) => setText(asText(changed))}
                />
              </>
            )}
          </fieldset>
          <Field label="Arguments as JSON">
            <textarea
              rows={12}
              spellcheck={false}
              value={shown}
              aria-invalid={args === null}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </Field>
        </div>
        {args === null && <Notice kind="bad">{whyNot(shown)}</Notice>}
        <p class="buttons">
          <button type="submit" class="main">
            {isBusy ? 'Explaining…' : 'Explain'}
          </button>
        </p>
      </form>
      <div ref={region}>
        <Failure error={result.error} />
        {result.call && args !== null && <Explanation call={result.call} />}
      </div>
    </>
  );
}

/** The verdict first, then how it came about. */
function Explanation({ call }: { readonly call: SimulatedCall }) {
  const { injected, commands, agent, tool, allowed, asksApproval, refusal, passed } = call;
  const hasOthers = commands.some(({ database }) => database !== undefined);
  const code = (value: unknown) => <code>{JSON.stringify(value)}</code>;
  return (
    <section class="explanation" aria-label="Explanation">
      <div class={`verdict ${allowed ? 'good' : 'bad'}`}>
        <p class="outcome">
          <strong>
            {allowed ? `allowed${asksApproval ? ', once a person approved it' : ''}` : 'refused'}
          </strong>{' '}
          {tool} as {agent}
        </p>
        {refusal && (
          <Facts
            pairs={[
              ['gate', refusal.gate],
              ['code', refusal.code],
              ['sent to the agent', refusal.opaque ? 'Invalid params' : refusal.message],
              ...(refusal.cause === undefined ? [] : [['for operators alone', refusal.cause] as const]),
              ...Object.entries(refusal.details ?? {}).map(
                ([name, value]) => [name, valueText(value)] as const,
              ),
            ]}
          />
        )}
      </div>
      <h2>Gates, in their order</h2>
      <ol class="gates">
        {passed.map(({ gate, subject }, at) => (
          <li key={at}>
            <Badge kind="good">passed</Badge>
            <span>{gate}</span>
            {subject !== undefined && <span class="quiet">{subject}</span>}
          </li>
        ))}
        {refusal && (
          <li class="stopped">
            <Badge kind="bad">refused</Badge>
            <span>{refusal.gate}</span>
          </li>
        )}
      </ol>
      {injected.length > 0 && (
        <>
          <h2>Rows must also meet</h2>
          <DataTable
            caption={`Limits of ${tool} for ${agent}`}
            columns={['Class', 'Required by', 'Condition']}
            rows={injected.map(({ className, origin, where }) => [className, origin, code(where)])}
          />
        </>
      )}
      {commands.length > 0 && (
        <>
          <h2>Commands that the database would receive</h2>
          <DataTable
            caption="Commands to the database"
            columns={['Command', 'Class', ...(hasOthers ? ['Database'] : []), 'With']}
            rows={commands.map(({ command, database, query: { className, ...query } }) => [
              command,
              valueText(className),
              ...(hasOthers ? [database ?? 'the first one'] : []),
              code(query),
            ])}
          />
        </>
      )}
    </section>
  );
}
