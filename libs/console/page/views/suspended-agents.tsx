import type { AgentsAnswer, ChangedAgent, ListedAgent } from '../../src/controllers/agents.controller.js';
import { useEffect, useRef, useState } from 'preact/hooks';
import { announce, Badge, DataTable, Failure, Field, Loaded, Notice, Time } from '../components.js';
import { toAddress } from '../address.js';
import { send, useAnswer, useRequest } from '../server.js';
import { cleanText } from '../shown-text.js';

/** Who may call, and the buttons that suspend an agent at once or resume it. */
export function SuspendedAgents() {
  const answer = useAnswer<AgentsAnswer>('api/suspensions');
  return (
    <Loaded of={answer}>
      {({ scope, agents }) => (
        <>
          {scope === 'process' && (
            <Notice>Without Redis a suspension counts for this process alone, until it ends.</Notice>
          )}
          <div class="agents">
            <DataTable
              caption="Agents"
              columns={['Agent', 'State', 'Change']}
              rows={agents.map((agent) => [
                <a href={toAddress('agent', { name: agent.name })}>{agent.name}</a>,
                <SuspensionState agent={agent} />,
                <SuspensionButton agent={agent} scope={scope} onChanged={answer.reload} />,
              ])}
            />
          </div>
        </>
      )}
    </Loaded>
  );
}

/** Whether it may call; otherwise since when not, by whom and why. */
export function SuspensionState({ agent: { configured, suspended } }: { readonly agent: ListedAgent }) {
  if (!suspended) return <Badge kind="good">active</Badge>;
  return (
    <>
      <Badge kind="bad">suspended</Badge> <Time iso={suspended.since} />{' '}
      <span class="quiet">{`by ${suspended.by}: ${cleanText(suspended.reason, 500)}`}</span>
      {!configured && <span class="quiet"> (not configured here)</span>}
    </>
  );
}

interface ChangeProps {
  readonly agent: ListedAgent;
  readonly scope: AgentsAnswer['scope'];
  readonly onChanged: () => void;
}

/** A button that asks first, and a reason. */
export function SuspensionButton({ agent: { name, suspended }, scope, onChanged }: ChangeProps) {
  const [open, setOpen] = useState(false);
  const [reason, setReason] = useState('');
  const { busy, error, run } = useRequest();
  const opener = useRef<HTMLButtonElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const wasOpen = useRef(false);
  useEffect(() => {
    // What is pressed is replaced, and the focus would be lost with it.
    if (open) input.current?.focus();
    else if (wasOpen.current) opener.current?.focus();
    wasOpen.current = open;
  }, [open]);
  const action = suspended ? 'resume' : 'suspend';
  const label = suspended ? 'Resume' : 'Suspend';
  const change = () =>
    run(async () => {
      const given = reason.trim();
      await send<ChangedAgent>('POST', `api/suspensions/${encodeURIComponent(name)}`, {
        action,
        ...(given !== '' && { reason: given }),
      });
      announce(`${name} is ${suspended ? 'active again' : 'suspended'}`);
      setOpen(false);
      setReason('');
      onChanged();
    });
  if (!open)
    return (
      <button ref={opener} type="button" aria-label={`${label} ${name}`} onClick={() => setOpen(true)}>
        {label}…
      </button>
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void change();
      }}
    >
      <Field label={suspended ? 'Reason (may be left out)' : 'Reason, for the audit record'}>
        <input
          ref={input}
          value={reason}
          required={!suspended}
          maxLength={500}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </Field>
      {!suspended && (
        <p class="hint">
          {`Its calls, streams and tasks end at once${scope === 'process' ? ', on this process alone: there is no Redis' : ''}.`}
        </p>
      )}
      <Failure error={error} />
      <p class="buttons">
        <button type="submit" disabled={busy} aria-label={`${label} ${name}`}>
          {label}
        </button>
        <button type="button" onClick={() => setOpen(false)}>
          Cancel
        </button>
      </p>
    </form>
  );
}
