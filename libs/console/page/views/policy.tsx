import { useState } from 'preact/hooks';
import type { PolicyChanges } from '../../src/controllers/explain.controller.js';
import type {
  MetadataAnswer,
  PolicyAgents,
  PolicyAnswer,
  ShownClass,
} from '../../src/controllers/policy.controller.js';
import { Badge, DataTable, Facts, Failure, Heading, type Kind, Loaded, Notice, Time } from '../components.js';
import { formatCount, names } from '../formats.js';
import { ask, useAnswer } from '../server.js';
import { AgentMatrix } from './agent-matrix.js';
import { ChangesTable } from './changes-table.js';
import { SuspendedAgents } from './suspended-agents.js';
import { TryPolicy } from './try-policy.js';

/** What each agent sees, what changed, and which descriptions and fields are missing. */
export function PolicyPage() {
  const agents = useAnswer<PolicyAgents>('api/policy/agents');
  const metadata = useAnswer<MetadataAnswer>('api/metadata');
  return (
    <>
      <Heading>Policy</Heading>
      <Loaded of={agents}>
        {(value) => (
          <>
            <p class="quiet">{`Version ${value.version}, number ${value.number} since the start`}</p>
            <h2>What each agent sees</h2>
            <AgentMatrix agents={value.agents} />
          </>
        )}
      </Loaded>
      <h2>Suspend an agent</h2>
      <SuspendedAgents />
      <h2>Rules of each class, for every agent</h2>
      <ClassList />
      <h2>What changed</h2>
      <VersionChanges />
      <h2>Try a changed policy</h2>
      <TryPolicy />
      <h2>What is missing</h2>
      <Loaded of={metadata}>{(value) => <Gaps found={value} />}</Loaded>
    </>
  );
}

const CLASS_ACCESS: Readonly<Record<ShownClass['access'], Kind>> = {
  open: 'busy',
  limited: 'good',
  hidden: 'plain',
};

/** Classes with rules of their own, a page at a time. */
function ClassList() {
  const first = useAnswer<PolicyAnswer>('api/policy');
  return <Loaded of={first}>{(page) => <MoreClasses key={page.total} page={page} />}</Loaded>;
}

function MoreClasses({ page }: { readonly page: PolicyAnswer }) {
  const [further, setFurther] = useState<readonly PolicyAnswer[]>([]);
  const [error, setError] = useState<unknown>(null);
  const pages = [page, ...further];
  const next = pages.at(-1)?.next ?? null;
  if (page.total === 0)
    return (
      <p class="empty">
        No class has rules of its own. They are written below <code>policy.classes</code>.
      </p>
    );
  const more = () =>
    void ask<PolicyAnswer>(`api/policy?after=${encodeURIComponent(next ?? '')}`).then(
      (loaded) => setFurther([...further, loaded]),
      setError,
    );
  return (
    <>
      <div class="classes">
        {pages
          .flatMap(({ classes }) => classes)
          .map((rules) => (
            <ClassItem key={rules.name} rules={rules} />
          ))}
      </div>
      <Failure error={error} />
      {next !== null && (
        <p>
          <button type="button" onClick={more}>
            More classes
          </button>
        </p>
      )}
    </>
  );
}

function ClassItem({ rules }: { readonly rules: ShownClass }) {
  const { name, access, description, masks, enums, methods } = rules;
  const masked = masks.map(({ field, tiers }) => {
    const forms = [...new Set(Object.values(tiers))];
    const text =
      forms.length === 1
        ? (forms[0] ?? '')
        : Object.entries(tiers)
            .map((pair) => pair.join(': '))
            .join(', ');
    return `${field} (${text})`;
  });
  return (
    <details class="class">
      <summary>
        <strong>{name}</strong> <Badge kind={CLASS_ACCESS[access]}>{access}</Badge>{' '}
        <span class="quiet">{description ?? (access === 'hidden' ? '' : 'no description')}</span>
      </summary>
      <Facts
        pairs={[
          ['readable fields', rules.fields === null ? 'all: no list' : names(rules.fields)],
          ['in joins', rules.join_fields === null ? 'as above' : names(rules.join_fields)],
          ['large fields', names(rules.large_fields)],
          ['masked', names(masked)],
          ...(rules.database === null ? [] : [['database', rules.database] as const]),
          ['tenant', rules.tenant_field ?? 'not divided by tenant'],
          ['rows filtered on', names(rules.filters)],
          ['default filter on', names(rules.canonical_filter)],
          ...Object.entries(enums).map(([field, values]) => [`values of ${field}`, names(values)] as const),
          ['methods', names(methods.map((method) => `${method.name} (${method.permission})`))],
        ]}
      />
    </details>
  );
}

function VersionChanges() {
  const [range, setRange] = useState<string>('');
  const answer = useAnswer<PolicyChanges>(`api/policy/changes${range}`);
  return (
    <Loaded of={answer}>
      {({ versions, from, to, widens, changes, cut }) =>
        from === null ? (
          <p class="empty">
            This replica has served one version, and no audit record of the day before its start has another.
            Changes of a reload are listed here.
          </p>
        ) : (
          <>
            <div class="bar">
              <label class="field inline">
                Versions{' '}
                <select
                  value={`${from} ${to}`}
                  onChange={(event) => {
                    const [one = '', other = ''] = event.currentTarget.value.split(' ');
                    setRange(`?from=${one}&to=${other}`);
                  }}
                >
                  {versions.slice(0, -1).map((newer, at) => {
                    const older = versions[at + 1];
                    const value = `${older?.number} ${newer.number}`;
                    return (
                      <option key={value} value={value} selected={value === `${from} ${to}`}>
                        {`${older?.number} to ${newer.number} (${newer.version})`}
                      </option>
                    );
                  })}
                </select>
              </label>
              <span>
                loaded at <Time iso={versions.find(({ number }) => number === to)?.loaded_at ?? ''} />
              </span>
              {widens ? <Badge kind="busy">widens access</Badge> : <Badge kind="good">widens nothing</Badge>}
            </div>
            {changes.length === 0 ? (
              <p class="empty">No agent sees anything else than before.</p>
            ) : (
              <ChangesTable caption="What changed between the versions" changes={changes} />
            )}
            {cut > 0 && <Notice>{`${formatCount(cut, 'further change')} not shown.`}</Notice>}
          </>
        )
      }
    </Loaded>
  );
}

function Gaps({ found }: { readonly found: MetadataAnswer }) {
  const rows = [
    ...found.missing_class_descriptions.map((name) => [name, 'has no description', ''] as const),
    ...Object.entries(found.missing_field_descriptions).map(
      ([name, fields]) => [name, 'fields without description', names(fields)] as const,
    ),
    ...Object.entries(found.unresolvable_allowlist_entries).map(
      ([name, fields]) => [name, 'allowed fields that the database does not have', names(fields)] as const,
    ),
  ];
  if (rows.length === 0)
    return (
      <p class="empty">
        {found.classes_audited === 0
          ? 'No class is shown to agents, so nothing has to be described.'
          : `${formatCount(found.classes_audited, 'class', 'classes')}: everything is described.`}
      </p>
    );
  return (
    <details>
      <summary>{`${formatCount(rows.length, 'gap')} in ${formatCount(found.classes_audited, 'class', 'classes')}`}</summary>
      <DataTable caption="What is missing" columns={['Class', 'What', 'Fields']} rows={rows} />
    </details>
  );
}
