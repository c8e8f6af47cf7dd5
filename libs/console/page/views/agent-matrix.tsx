import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ShownAgentSurface } from '../../src/controllers/explain.controller.js';
import type { PolicyAgents } from '../../src/controllers/policy.controller.js';
import type { ShownAgentClass } from '../../src/policy-view.js';
import { toAddress, useAddress } from '../address.js';
import { Badge, type Fact, Facts, Failure, type Kind } from '../components.js';
import { formatCount, names } from '../formats.js';
import { ask } from '../server.js';

type Agent = PolicyAgents['agents'][number];
/** Columns of the matrix that are loaded at once. */
const MOST_AGENTS = 12;
const MOST_CLASSES = 50;

type Column = { readonly page: ShownAgentSurface | null; readonly error: unknown };

/** Agents × classes. A cell opens to everything that holds for its agent and class; the choice is in the address. */
export function AgentMatrix({ agents }: { readonly agents: readonly Agent[] }) {
  const { filters } = useAddress();
  const first = Math.max(0, Number(filters.get('first')) || 0);
  const shown = agents.slice(first, first + MOST_AGENTS);
  const [columns, setColumns] = useState<ReadonlyMap<string, Column>>(new Map());
  const [after, setAfter] = useState<readonly string[]>([]);
  const from = after.at(-1) ?? '';
  useEffect(() => {
    const leaving = new AbortController();
    const load = async () => {
      // One after the other: each is decided by the gates of its agent, and few may wait at once.
      for (const { name } of shown) {
        const path = `api/policy/agents/${encodeURIComponent(name)}?limit=${MOST_CLASSES}&after=${encodeURIComponent(from)}`;
        const column = await ask<ShownAgentSurface>(path, leaving.signal).then(
          (page) => ({ page, error: null }),
          (error: unknown) => ({ page: null, error }),
        );
        if (leaving.signal.aborted) return;
        setColumns((before) => new Map([...before, [name, column]]));
      }
    };
    setColumns(new Map());
    void load();
    return () => leaving.abort();
  }, [from, first, agents]);

  const pages = [...columns.values()].flatMap(({ page }) => (page ? [page] : []));
  const classes = [...new Set(pages.flatMap((page) => page.classes.map(({ name }) => name)))].sort();
  const failed = [...columns.values()].find(({ error }) => error !== null);
  const findSight = (agent: string, className: string) =>
    columns.get(agent)?.page?.classes.find(({ name }) => name === className);
  const address = (changed: Record<string, string>) =>
    toAddress('policy', { first: first === 0 ? '' : String(first), ...changed });
  const chosen = { agent: filters.get('agent') ?? '', className: filters.get('class') ?? '' };
  const sight = findSight(chosen.agent, chosen.className);
  const next = pages.find(({ next: more }) => more !== null)?.next ?? null;
  return (
    <>
      {failed && <Failure error={failed.error} />}
      <div class="table-frame matrix" tabIndex={0} role="region" aria-label="Agents and classes">
        <table>
          <caption class="unseen">What each agent sees of each class</caption>
          <thead>
            <tr>
              <th scope="col">Class</th>
              {shown.map(({ name, permissions, tenant_id: tenant, operator }) => (
                <th key={name} scope="col">
                  {name}
                  <span class="quiet">
                    {` ${permissions}`}
                    {tenant !== null && ` · tenant ${tenant}`}
                    {operator && ' · operator'}
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {classes.map((className) => (
              <tr key={className}>
                <th scope="row">{className}</th>
                {shown.map(({ name }) => (
                  <td key={name}>
                    <Cell
                      sight={findSight(name, className)}
                      isLoading={!columns.has(name)}
                      href={address({ agent: name, class: className })}
                      isChosen={chosen.agent === name && chosen.className === className}
                      label={`${name} and ${className}`}
                    />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {classes.length === 0 && columns.size === shown.length && <p class="empty">There is no class.</p>}
        {columns.size < shown.length && <p class="quiet loading">Loading…</p>}
      </div>
      <p class="buttons">
        {after.length > 0 && (
          <button type="button" onClick={() => setAfter(after.slice(0, -1))}>
            Classes before
          </button>
        )}
        {next !== null && (
          <button type="button" onClick={() => setAfter([...after, next])}>
            More classes
          </button>
        )}
        {first > 0 && (
          <a class="button" href={toAddress('policy', { first: String(Math.max(0, first - MOST_AGENTS)) })}>
            Agents before
          </a>
        )}
        {first + MOST_AGENTS < agents.length && (
          <a class="button" href={toAddress('policy', { first: String(first + MOST_AGENTS) })}>
            {`More agents (${agents.length - first - MOST_AGENTS})`}
          </a>
        )}
      </p>
      {sight && <SightDetails agent={chosen.agent} sight={sight} />}
    </>
  );
}

const ACCESS: Readonly<Record<ShownAgentClass['access'], readonly [string, Kind]>> = {
  none: ['no access', 'plain'],
  limited: ['limited', 'busy'],
  open: ['open', 'good'],
};

/** What limits an agent at a class, in words. */
function describeLimits({
  every_field: every,
  fields,
  masks,
  limits,
  enums,
  methods,
}: ShownAgentClass): readonly string[] {
  const tenants = limits.filter(({ origin }) => origin === 'tenant');
  const others = limits.length - tenants.length;
  return [
    every ? 'all fields' : formatCount(fields.length, 'field'),
    ...(masks.length > 0 ? [`${masks.length} masked`] : []),
    ...(tenants.length > 0 ? ['tenant'] : []),
    ...(others > 0 ? [formatCount(others, 'filter')] : []),
    ...(Object.keys(enums).length > 0 ? [formatCount(Object.keys(enums).length, 'enum')] : []),
    ...(methods.length > 0 ? [formatCount(methods.length, 'method')] : []),
  ];
}

function Cell(props: {
  sight: ShownAgentClass | undefined;
  isLoading: boolean;
  href: string;
  isChosen: boolean;
  label: string;
}): ComponentChildren {
  const { sight, isLoading, href, isChosen, label } = props;
  if (!sight) return <span class="quiet">{isLoading ? '…' : '–'}</span>;
  const [text, kind] = ACCESS[sight.access];
  const limits = sight.access === 'none' ? [] : describeLimits(sight);
  return (
    <a
      class="cell"
      href={href}
      aria-current={isChosen ? 'true' : undefined}
      aria-label={`${label}: ${[text, ...limits].join(', ')}`}
    >
      <Badge kind={kind}>{text}</Badge>
      <span class="cell-limits">{limits.join(' · ')}</span>
    </a>
  );
}

function SightDetails({ agent, sight }: { readonly agent: string; readonly sight: ShownAgentClass }) {
  const [text, kind] = ACCESS[sight.access];
  const enums: Fact[] = Object.entries(sight.enums).map(([field, values]) => [
    `values of ${field}`,
    names(values),
  ]);
  return (
    <section class="panel sight" aria-label={`${agent} and ${sight.name}`} role="status">
      <h3>
        {agent} and {sight.name} <Badge kind={kind}>{text}</Badge>
      </h3>
      {!sight.visible && <p>No tool and no listing of this agent reaches the class.</p>}
      <Facts
        pairs={[
          ['tools', names(sight.tools)],
          ['fields', sight.every_field ? 'all, also those that are added later' : names(sight.fields)],
          ['masked', names(sight.masks.map(({ field, form }) => `${field} (${form})`))],
          ...(sight.limits.length === 0
            ? [['rows', sight.access === 'none' ? 'none' : 'all'] as const]
            : sight.limits.map(
                ({ origin, fields, tools }, at) =>
                  [
                    `rows limited by ${origin}${sight.limits.findIndex((one) => one.origin === origin) === at ? '' : ` (${at + 1})`}`,
                    `${names(fields, 'a condition')} · in ${names(tools, 'all tools')}`,
                  ] as const,
              )),
          ...enums,
          ['methods', names(sight.methods.map(({ name, permission }) => `${name} (${permission})`))],
        ]}
      />
      <p class="buttons">
        <a class="button" href={toAddress('explain', { agent, class: sight.name })}>
          Explain a call
        </a>
        <a class="button" href={toAddress('audit', { agent, class: sight.name })}>
          Its records
        </a>
      </p>
    </section>
  );
}
