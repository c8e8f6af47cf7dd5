import type * as Prometheus from 'prom-client';
import type { DataOperation, ToolEnding } from '#agent';
import { BoundedNames } from '../bounded-names.js';
import type { MessageEnding } from '../telemetry.js';
import { DURATIONS, METRICS, type MetricName } from './metric-catalogue.js';

type Labels = Readonly<Record<string, string>>;

/** A value read when metrics are asked for; null: there is none to tell. */
export type Reading = readonly { readonly labels?: Labels; readonly value: number }[] | number | null;

/** Different names that one label may take. */
const MAX_TOOLS = 500;
const MAX_METHODS = 50;
const MAX_GATES = 100;

const LIMITS: Readonly<Record<string, string>> = {
  rate_limit: 'calls',
  running_calls: 'running',
  database_share: 'database',
  budget: 'budget',
};

/** Counts what the service does, and answers in the form of Prometheus. */
export class ServiceMetrics {
  private readonly registry: Prometheus.Registry;
  private readonly counters = new Map<MetricName, Prometheus.Counter>();
  private readonly histograms = new Map<MetricName, Prometheus.Histogram>();
  private readonly readings = new Map<MetricName, () => Reading | Promise<Reading>>();
  private readonly tools: BoundedNames;
  private readonly methods = new BoundedNames(MAX_METHODS);
  private readonly gates = new BoundedNames(MAX_GATES);
  /** Set when the tools are known: what does not exist has no time series. */
  private isTool: (name: string) => boolean = () => false;

  constructor(private readonly prometheus: typeof Prometheus) {
    this.registry = new prometheus.Registry();
    this.tools = new BoundedNames(MAX_TOOLS, (name) => this.isTool(name));
    for (const [name, declared] of Object.entries(METRICS) as [MetricName, (typeof METRICS)[MetricName]][]) {
      const { help } = declared;
      const common = { name, help, labelNames: [...declared.labels], registers: [this.registry] };
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

  knowTools(isTool: (name: string) => boolean): void {
    this.isTool = isTool;
  }

  /** Says where the value of a gauge, or of a counter that is kept elsewhere, is read. */
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

  refusedByEdge(check: string): void {
    this.count('parley_edge_refusals_total', { check: this.gates.of(check) });
    if (check === 'pre-auth-limit') this.count('parley_rate_limited_total', { limit: 'pre_auth' });
  }

  tool(name: string, ending: ToolEnding): void {
    const tool = this.tools.of(name);
    const { success, error_code: code = 'none', gate = 'none' } = ending;
    const fault = code === 'internal_error' || code === 'parse_error' || code === 'timeout';
    const outcome = success ? 'ok' : fault ? 'failed' : 'refused';
    this.count('parley_tool_calls_total', { tool, outcome, code, gate: this.gates.of(gate) });
    this.observe('parley_tool_duration_seconds', { tool, outcome }, ending.duration_ms);
    const limit = code === 'rate_limited' ? LIMITS[gate] : undefined;
    if (limit !== undefined) this.count('parley_rate_limited_total', { limit });
    this.cost(tool, ending);
  }

  database(
    { name: operation }: DataOperation,
    rows: number,
    milliseconds: number,
    code: string | null,
  ): void {
    this.count('parley_database_operations_total', { operation, outcome: code ?? 'ok' });
    this.observe('parley_database_duration_seconds', { operation }, milliseconds);
    this.add('parley_database_rows_total', { operation }, rows);
  }

  approval(outcome: string): void {
    this.count('parley_approvals_total', { outcome: this.gates.of(outcome) });
  }

  private cost(tool: string, ending: ToolEnding): void {
    const { result_size, est_input_tokens, est_cost_usd, embed_calls, embed_tokens, embed_cost_usd } = ending;
    this.add('parley_result_bytes_total', { tool }, result_size);
    this.add('parley_result_tokens_total', { tool }, est_input_tokens);
    this.add('parley_result_cost_usd_total', { tool }, est_cost_usd);
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
      // Reset, one without labels would tell a zero that nobody read.
      if (!common.labelNames?.length) into.remove();
      for (const { labels = {}, value } of await this.readingOf(name)) into.set(labels, value);
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
    for (const { labels = {}, value } of await this.readingOf(name)) counter?.inc(labels, value);
  }

  /** What cannot be read at this moment is left out; the rest is told. */
  private async readingOf(name: MetricName): Promise<readonly { labels?: Labels; value: number }[]> {
    try {
      const reading = await this.readings.get(name)?.();
      if (reading === undefined || reading === null) return [];
      return typeof reading === 'number' ? [{ value: reading }] : reading;
    } catch {
      return [];
    }
  }
}
