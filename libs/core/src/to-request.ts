import { LazyAbort } from './abortable.js';
import { Agent } from './agent.js';
import { McpRequest, type RequestTransport } from './mcp-request.js';

/** Who calls from code: an agent, one with what its call reports to, or the call that runs. */
export type CodeCaller =
  | McpRequest
  | Agent
  | ({ readonly agent: Agent } & Partial<
      Pick<RequestTransport, 'signal' | 'progress' | 'log' | 'correlationId'>
    >);

const MEMBERS: readonly string[] = ['agent', 'signal', 'progress', 'log', 'correlationId'];

/**
 * The request of a caller in code. One without a call of its own ends by its time-out alone.
 * @throws TypeError for what names no agent, and for unknown members
 */
export function toRequest(caller: CodeCaller): McpRequest {
  if (caller instanceof McpRequest) return caller;
  const given: unknown = caller instanceof Agent ? { agent: caller } : caller;
  const { agent, signal, ...reports } = (given ?? {}) as Exclude<CodeCaller, McpRequest | Agent>;
  if (!((agent as unknown) instanceof Agent))
    throw new TypeError('expected an agent, as agentFor returns, { agent }, or the call that runs');
  const unknown = Object.keys(given as object).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined)
    throw new TypeError(
      `unknown option '${unknown}' beside agent; there are: ${MEMBERS.slice(1).join(', ')}`,
    );
  const correlationId = reports.correlationId ?? agent.correlationId ?? undefined;
  const transport: RequestTransport = signal ? { signal } : new LazyAbort();
  return new McpRequest(agent, Object.assign(transport, reports, { correlationId }));
}
