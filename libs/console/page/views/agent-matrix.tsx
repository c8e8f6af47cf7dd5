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
  const [round, setRound] = useState(0);
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
  }, [from, first, agents, round]);

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
  const failure = failed && <Failure error={failed.error} retry={() => setRound(round + 1)} />;
  if (failed && classes.length === 0) return failure;
  return (
    <>
      {failure}
      <Legend />
      <div class="table-frame matrix" tabIndex={0} role="region" aria-label="Agents and classes">
        <table>
          <caption class="unseen">What each agent sees of each class</caption>
          <thead>
            <tr>
              <th scope="col">Class</th>
              {shown.map(({ name, permissions, tenant_id: tenant, operator }) => (
                <th key={name} scope="col">
                  <a href={toAddress('agent', { name })}>{name}</a>
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
        {classes.length === 0 && pages.length === shown.length && (
          <p class="empty">
            There is no class. <code>parley init</code> writes a first list of those in the database.
          </p>
        )}
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
  limited: ['limited', 'good'],
  open: ['open', 'busy'],
};

/** A mark of a cell: what it looks like, what it says, and whether the agent may do it. */
interface Mark {
  readonly sign: string;
  readonly text: string;
  readonly kind: 'may' | 'limits';
}

const READS: ReadonlySet<string> = new Set([
  'query_class',
  'get_object',
  'get_objects',
  'get_sample_objects',
  'count_objects',
  'distinct',
  'aggregate',
  'export_data',
  'atlas_text_search',
  'atlas_faceted_search',
  'semantic_search',
]);
const WRITES: ReadonlySet<string> = new Set(['create_object', 'update_object']);
const DELETES: ReadonlySet<string> = new Set(['delete_object']);

/** What an agent may do with a class, and what limits it, each as a mark. */
function listMarks({
  tools,
  every_field: every,
  fields,
  masks,
  limits,
  methods,
}: ShownAgentClass): readonly Mark[] {
  const may = (sign: string, text: string, wanted: ReadonlySet<string>): Mark[] =>
    tools.some((tool) => wanted.has(tool)) ? [{ sign, text, kind: 'may' }] : [];
  const limit = (sign: string, text: string, count: number): Mark[] =>
    count === 0 ? [] : [{ sign, text, kind: 'limits' }];
  const tenants = limits.filter(({ origin }) => origin === 'tenant').length;
  return [
    ...may('R', 'reads', READS),
    ...may('W', 'writes', WRITES),
    ...may('D', 'deletes', DELETES),
    ...(methods.length > 0
      ? [{ sign: `M${methods.length}`, text: formatCount(methods.length, 'method'), kind: 'may' as const }]
      : []),
    ...limit('T', 'rows of its tenant', tenants),
    ...limit('F', 'rows by a filter', limits.length - tenants),
    ...limit(`${fields.length}f`, formatCount(fields.length, 'field'), every || tools.length === 0 ? 0 : 1),
    ...limit(`${masks.length}m`, `${masks.length} masked`, masks.length),
  ];
}

const LEGEND: readonly (readonly [sign: string, text: string])[] = [
  ['R', 'reads'],
  ['W', 'writes'],
  ['D', 'deletes'],
  ['M', 'calls methods, by number'],
  ['T', 'rows of its tenant only'],
  ['F', 'rows by a filter only'],
  ['3f', 'these many fields only'],
  ['2m', 'these many fields masked'],
  ['–', 'no access'],
];

/** What the marks of the matrix say. */
function Legend() {
  return (
    <ul class="legend-marks" aria-label="Marks of the matrix">
      {LEGEND.map(([sign, text], at) => (
        <li key={sign}>
          <span class={`mark ${at < 4 ? 'may' : at < 8 ? 'limits' : ''}`}>{sign}</span> {text}
        </li>
      ))}
    </ul>
  );
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
  const marks = sight.access === 'none' ? [] : listMarks(sight);
  return (
    <a
      class="cell"
      href={href}
      aria-current={isChosen ? 'true' : undefined}
      aria-label={`${label}: ${[text, ...marks.map((mark) => mark.text)].join(', ')}`}
      title={[text, ...marks.map((mark) => mark.text)].join(', ')}
    >
      {sight.access === 'none' && <span class="mark">–</span>}
      {sight.access === 'open' && <Badge kind={kind}>{text}</Badge>}
      {marks.map((mark) => (
        // Drawn by the style sheet: no text of the link that its label would lack.
        <span key={mark.sign} class={`mark ${mark.kind}`} data-sign={mark.sign} aria-hidden="true" />
      ))}
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
