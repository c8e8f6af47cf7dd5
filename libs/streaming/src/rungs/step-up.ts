import { Agent } from '#agent';
import type { StepUp } from '#auth';
import { member } from '#dispatcher';
import { callOf, runCall } from '../answers/answer-call.js';
import type { Exchange } from '../exchange.js';
import { isNotification } from '../message.js';
import type { EdgeParts, RungVerdict } from './rung.js';
import { insufficientScope } from './caller.js';

/** What the gates that know an agent alone refuse with. */
const GATE_CODES: ReadonlySet<unknown> = new Set(['permission_denied', 'tool_filtered', 'access_denied']);

/**
 * The nearest scopes with which the caller's agent would be one that may make this call, when its own may not. A tool that
 * none of those agents is shown is refused like any other.
 */
export function stepUpOf({ message }: Exchange, edge: EdgeParts, agent: Agent): StepUp | null {
  if (message.method !== 'tools/call' || isNotification(message)) return null;
  const above = edge.authenticator.stepsAbove(agent);
  if (above.length === 0) return null;
  const name = member(message.params, 'name');
  const args = member(message.params, 'arguments') ?? {};
  if (typeof name !== 'string' || edge.kernel.permits(agent, name, args)) return null;
  const { principal } = agent;
  return above.find(({ shape }) => edge.kernel.permits(new Agent({ shape, principal }), name, args)) ?? null;
}

/** The call is made all the same, so that it is counted and recorded like every other refusal; only its answer differs. */
export async function answerStepUp(
  { scopes }: StepUp,
  exchange: Exchange,
  edge: EdgeParts,
  agent: Agent,
): Promise<RungVerdict> {
  const call = callOf(agent, exchange.message, exchange);
  exchange.onGone = () => call.abort('client_disconnect');
  if (exchange.isGone) exchange.onGone();
  const outcome = await runCall(call, exchange, edge, null);
  if (exchange.isGone) return 'gone';
  if (!('body' in outcome)) return insufficientScope(edge, scopes, call.message.id);
  return isGateRefusal(outcome.body, edge.kernel.permits(agent, toolOf(exchange), {}))
    ? insufficientScope(edge, scopes, call.message.id)
    : outcome;
}

const toolOf = ({ message }: Exchange) => String(member(message.params, 'name'));

/**
 * Whether it was one of those gates that spoke, and not a limit before them. Of a tool that is listed only its tier can be
 * missing: whatever else it refuses for, such as a class that is hidden, is answered as if there were no scopes.
 */
function isGateRefusal(body: string, isListed: boolean): boolean {
  const result = member(JSON.parse(body), 'result');
  const code = member(member(result, '_meta'), 'parse.error_code');
  return isListed ? code === 'permission_denied' : GATE_CODES.has(code);
}
