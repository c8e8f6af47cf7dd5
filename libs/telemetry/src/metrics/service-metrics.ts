import type * as Prometheus from 'prom-client';
import { type DataOperation, nameOutcome, type ToolEnding } from '#core';
import { BoundedNames } from '../bounded-names.js';
import type { MessageEnding } from '../telemetry.js';

/** A documented metric (docs/operations/observability.md; a test compares the page with this table). */
export interface MetricDeclaration {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
}

const counter = (help: string, ...labels: string[]): MetricDeclaration => ({ type: 'counter', labels, help });
const gauge = (help: string, ...labels: string[]): MetricDeclaration => ({ type: 'gauge', labels, help });
const seconds = (help: string, ...labels: string[]): MetricDeclaration => ({
  type: 'histogram',
  labels,
  help,
});

/** All metrics of Parley. No label holds the name of a caller or text that a caller can choose. */
export const METRICS = {
  parley_requests_total: counter(
    'MCP messages by method and outcome',
    'method',
    'era',
    'transport',
    'outcome',
  ),
  parley_request_duration_seconds: seconds('from the parsed JSON-RPC message to its answer', 'method', 'era'),
  parley_edge_refusals_total: counter(
    'HTTP requests refused before their JSON-RPC message was read, by check',
    'check',
  ),
  parley_abandoned_calls_total: counter('calls whose client disconnected before the answer'),
  parley_tool_calls_total: counter(
    'tool calls by outcome, refusal code and the gate that refused',
    'tool',
    'outcome',
    'code',
    'gate',
  ),
  parley_tool_duration_seconds: seconds(
    'of tool calls, with their gates and the time that they wait',
    'tool',
    'outcome',
  ),
  parley_rate_limited_total: counter('requests refused by a rate limit or budget', 'limit'),
  parley_result_bytes_total: counter('bytes of the text of results', 'tool'),
  parley_result_tokens_total: counter('tokens of results, estimated as a quarter of their bytes', 'tool'),
  parley_result_cost_usd_total: counter('cost of results as input tokens of a model, estimated', 'tool'),
  parley_embedding_requests_total: counter('requests to the embeddings endpoint'),
  parley_embedding_tokens_total: counter('tokens sent to the embeddings endpoint'),
  parley_embedding_cost_usd_total: counter('cost of embeddings, estimated'),
  parley_database_operations_total: counter(
    'database operations of calls by outcome',
    'operation',
    'database',
    'outcome',
  ),
  parley_database_duration_seconds: seconds(
    'of database operations, with the time that they wait for a connection',
    'operation',
    'database',
  ),
  parley_database_rows_total: counter(
    'rows that the database returned, before any was withheld',
    'operation',
    'database',
  ),
  parley_approvals_total: counter('decided approvals by outcome', 'outcome'),
  parley_streamed_answers: gauge('running requests that are answered as a stream'),
  parley_open_streams: gauge('open listening streams and downloads'),
  parley_sessions: gauge('open sessions: of all replicas with Redis, else of this process'),
  parley_subscriptions: gauge('resources that clients of this process subscribed to'),
  parley_tasks_running: gauge('tasks that run in this process'),
  parley_tasks_waiting: gauge('tasks in the queue: of all replicas with Redis, else of this process'),
  parley_pending_approvals: gauge('pending approvals: of all replicas with Redis, else of this process'),
  parley_ready: gauge('1 while GET /ready answers 200, else 0'),
  parley_dependency_up: gauge('1 while the dependency answers, else 0', 'dependency'),
  parley_audit_sink_state: gauge(
    '1 for the present state of an audit sink, 0 for the others',
    'sink',
    'state',
  ),
  parley_policy_info: gauge('1, labelled with the version of the policy in force', 'version'),
  parley_configuration_version: gauge('number of the configuration in force, from 1 at the start'),
  parley_configuration_refused: gauge('1 while the last configuration that was read is refused, else 0'),
  parley_build_info: gauge('1, labelled with the version of Parley', 'version'),
} as const satisfies Record<string, MetricDeclaration>;

export type MetricName = keyof typeof METRICS;

/** Metrics of calls and results, which have the label `agent` where `metrics.agentLabel` says so. */
const OF_CALLS: readonly MetricName[] = [
  'parley_tool_calls_total',
  'parley_result_bytes_total',
  'parley_result_tokens_total',
  'parley_result_cost_usd_total',
];

/** Buckets in seconds; they cover calls that wait for a person. */
const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

type Labels = Readonly<Record<string, string>>;

/** A value that is read at each scrape; null when there is none. */
export type Reading = readonly { readonly labels?: Labels; readonly value: number }[] | number | null;

/** Maximum number of distinct values per label. */
const MAX_TOOLS = 500;
const MAX_METHODS = 50;
const MAX_GATES = 100;
const MAX_AGENTS = 200;

const LIMITS: Readonly<Record<string, string>> = {
  rate_limit: 'calls',
  running_calls: 'running',
  database_share: 'database',
  budget: 'budget',
};

interface MetricsOptions {
  /** Its number where several processes serve: every value is labelled with it. */
  readonly process: number | null;
  /** Whether metrics of calls and results are labelled with the configured agent. */
  readonly agentLabel: boolean;
}

/** The names that a label may hold; any other name comes from a client, or from code that makes agents as it runs. */
export interface KnownMetricNames {
  readonly isTool: (name: string) => boolean;
  readonly isPrompt: (name: string) => boolean;
  readonly isAgent: (name: string) => boolean;
}

/** Counts events and serves them in the Prometheus format. */
export class ServiceMetrics {
  private readonly registry: Prometheus.Registry;
  private readonly counters = new Map<MetricName, Prometheus.Counter>();
  private readonly histograms = new Map<MetricName, Prometheus.Histogram>();
  private readonly readings = new Map<MetricName, () => Reading | Promise<Reading>>();
  private readonly tools: BoundedNames;
  private readonly methods = new BoundedNames(MAX_METHODS);
  private readonly gates = new BoundedNames(MAX_GATES);
  private readonly agents: BoundedNames;
  private isAgent: (name: string) => boolean = () => false;
  /** Set when the tools are known: unknown names get no time series. */
  private isTool: (name: string) => boolean = () => false;

  constructor(
    private readonly prometheus: typeof Prometheus,
    private readonly options: MetricsOptions,
  ) {
    const { process } = options;
    this.registry = new prometheus.Registry();
    if (process !== null) this.registry.setDefaultLabels({ process: String(process) });
    this.tools = new BoundedNames(MAX_TOOLS, (name) => this.isTool(name));
    this.agents = new BoundedNames(MAX_AGENTS, (name) => this.isAgent(name));
    for (const [name, declared] of Object.entries(METRICS) as [MetricName, (typeof METRICS)[MetricName]][]) {
      const { help } = declared;
      const labelNames = [...declared.labels, ...(OF_CALLS.includes(name) ? this.agentLabels : [])];
      const common = { name, help, labelNames, registers: [this.registry] };
      if (declared.type === 'counter') this.counters.set(name, new prometheus.Counter(common));
      else if (declared.type === 'histogram')
        this.histograms.set(name, new prometheus.Histogram({ ...common, buckets: DURATIONS }));
      else this.gauge(name, common);
    }
    prometheus.collectDefaultMetrics({ register: this.registry });
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  knowNames({ isTool, isAgent }: Pick<KnownMetricNames, 'isTool' | 'isAgent'>): void {
    this.isTool = isTool;
    this.isAgent = isAgent;
  }

  private get agentLabels(): readonly 'agent'[] {
    return this.options.agentLabel ? ['agent'] : [];
  }

  /** Registers how a gauge, or a counter that is kept elsewhere, is read. */
  read(name: MetricName, reading: () => Reading | Promise<Reading>): void {
    this.readings.set(name, reading);
  }

  async text(): Promise<string> {
    for (const name of this.counters.keys()) await this.refreshCounter(name);
    return this.registry.metrics();
  }

  message(
    { method, era, transport }: { readonly method: string; readonly era: string; readonly transport: string },
    { outcome }: MessageEnding,
    milliseconds: number,
  ): void {
    const named = this.methods.of(method);
    this.count('parley_requests_total', { method: named, era, transport, outcome });
    this.observe('parley_request_duration_seconds', { method: named, era }, milliseconds);
  }

  countEdgeRefusal(check: string): void {
    this.count('parley_edge_refusals_total', { check: this.gates.of(check) });
    if (check === 'pre-auth-limit') this.count('parley_rate_limited_total', { limit: 'pre_auth' });
  }

  tool(name: string, ending: ToolEnding): void {
    const tool = this.tools.of(name);
    const { error_code: code = 'none', gate = 'none', agent_name } = ending;
    const whose: Labels = this.options.agentLabel ? { agent: this.agents.of(agent_name) } : {};
    const outcome = nameOutcome(ending);
    this.count('parley_tool_calls_total', { tool, outcome, code, gate: this.gates.of(gate), ...whose });
    this.observe('parley_tool_duration_seconds', { tool, outcome }, ending.duration_ms);
    const limit = code === 'rate_limited' ? LIMITS[gate] : undefined;
    if (limit !== undefined) this.count('parley_rate_limited_total', { limit });
    this.cost({ tool, ...whose }, ending);
  }

  database(
    { name: operation, database }: DataOperation,
    rows: number,
    milliseconds: number,
    code: string | null,
  ): void {
    const labels: Labels = { operation, ...(database !== undefined && { database }) };
    this.count('parley_database_operations_total', { ...labels, outcome: code ?? 'ok' });
    this.observe('parley_database_duration_seconds', labels, milliseconds);
    this.add('parley_database_rows_total', labels, rows);
  }

  approval(outcome: string): void {
    this.count('parley_approvals_total', { outcome: this.gates.of(outcome) });
  }

  private cost(labels: Labels, ending: ToolEnding): void {
    const { result_size, est_input_tokens, est_cost_usd, embed_calls, embed_tokens, embed_cost_usd } = ending;
    this.add('parley_result_bytes_total', labels, result_size);
    this.add('parley_result_tokens_total', labels, est_input_tokens);
    this.add('parley_result_cost_usd_total', labels, est_cost_usd);
    this.add('parley_embedding_requests_total', {}, embed_calls);
    this.add('parley_embedding_tokens_total', {}, embed_tokens);
    this.add('parley_embedding_cost_usd_total', {}, embed_cost_usd);
  }

  private count(name: MetricName, labels: Labels): void {
    this.counters.get(name)?.inc(labels);
  }

  private add(name: MetricName, labels: Labels, by: number | undefined): void {
    if (by !== undefined && by > 0) this.counters.get(name)?.inc(labels, by);
  }

  private observe(name: MetricName, labels: Labels, milliseconds: number): void {
    this.histograms.get(name)?.observe(labels, milliseconds / 1000);
  }

  private gauge(name: MetricName, common: Prometheus.GaugeConfiguration<string>): void {
    const show = async (into: Prometheus.Gauge) => {
      into.reset();
      // After a reset, a gauge without labels would report a zero that was not read.
      if (!common.labelNames?.length) into.remove();
      for (const { labels = {}, value } of await this.readMetric(name)) into.set(labels, value);
    };
    new this.prometheus.Gauge({
      ...common,
      collect() {
        return show(this);
      },
    });
  }

  private async refreshCounter(name: MetricName): Promise<void> {
    if (!this.readings.has(name)) return;
    const counter = this.counters.get(name);
    counter?.reset();
    for (const { labels = {}, value } of await this.readMetric(name)) counter?.inc(labels, value);
  }

  /** Values that cannot be read now are omitted; the others are reported. */
  private async readMetric(name: MetricName): Promise<readonly { labels?: Labels; value: number }[]> {
    try {
      const reading = await this.readings.get(name)?.();
      if (reading === undefined || reading === null) return [];
      return typeof reading === 'number' ? [{ value: reading }] : reading;
    } catch {
      return [];
    }
  }
}

/** Creates the metrics. `prom-client` is loaded only here. */
export async function openMetrics(options: Partial<MetricsOptions> = {}): Promise<ServiceMetrics> {
  return new ServiceMetrics(await import('prom-client'), { process: null, agentLabel: false, ...options });
}
