/** One metric as it is promised to operators (docs/observability.md, which a test compares with this). */
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

/** Every metric of Parley's own. No label holds what a caller is called, or what it can make up. */
export const METRICS = {
  parley_requests_total: counter('MCP messages, by how they ended', 'method', 'era', 'transport', 'outcome'),
  parley_request_duration_seconds: seconds('from the envelope to the answer', 'method', 'era'),
  parley_edge_refusals_total: counter('HTTP requests refused before their message was looked at', 'check'),
  parley_abandoned_calls_total: counter('calls whose client left before the answer'),
  parley_tool_calls_total: counter(
    'tool calls, by how they ended and which gate refused',
    'tool',
    'outcome',
    'code',
    'gate',
  ),
  parley_tool_duration_seconds: seconds('of tool calls, gates and waiting included', 'tool', 'outcome'),
  parley_rate_limited_total: counter('refusals of a limit', 'limit'),
  parley_result_bytes_total: counter('text of results', 'tool'),
  parley_result_tokens_total: counter('estimated tokens of results, a quarter of their bytes', 'tool'),
  parley_result_cost_usd_total: counter('estimated cost of reading results', 'tool'),
  parley_embedding_requests_total: counter('requests to the embeddings endpoint'),
  parley_embedding_tokens_total: counter('tokens that were embedded'),
  parley_embedding_cost_usd_total: counter('estimated cost of embeddings'),
  parley_database_operations_total: counter('operations of calls, by how they ended', 'operation', 'outcome'),
  parley_database_duration_seconds: seconds('of operations, waiting for a connection included', 'operation'),
  parley_database_rows_total: counter('rows handed out, before any was withheld', 'operation'),
  parley_approvals_total: counter('decisions upon calls that need a person', 'outcome'),
  parley_streamed_answers: gauge('answers being worked on whose client takes a stream'),
  parley_open_streams: gauge('streams that stay open by themselves'),
  parley_sessions: gauge('sessions remembered by this process; absent where Redis keeps them'),
  parley_subscriptions: gauge('resources watched for clients of this process'),
  parley_tasks_running: gauge('task runs in this process'),
  parley_tasks_waiting: gauge('task runs that wait for a worker'),
  parley_approvals_waiting: gauge('calls that wait at the approval desk; absent where Redis keeps them'),
  parley_ready: gauge('1 while /ready answers 200'),
  parley_dependency_up: gauge('1 while it answers', 'dependency'),
  parley_audit_sink_state: gauge('1 for the state that the sink is in, 0 for the others', 'sink', 'state'),
  parley_policy_info: gauge('1, with the version of the policy in force', 'version'),
  parley_configuration_edition: gauge('readings of the configuration that were served since the start'),
  parley_configuration_refused: gauge('1 while the last reading of the configuration is not served'),
  parley_build_info: gauge('1, with the version of the product', 'version'),
} as const satisfies Record<string, MetricDeclaration>;

export type MetricName = keyof typeof METRICS;

/** Seconds; wide enough for calls that wait for a person. */
export const DURATIONS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
];
