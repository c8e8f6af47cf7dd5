import { Agent } from '#agent';
import type { StepUp } from '#auth';
import { member } from '#dispatcher';
import { callOf, type Outcome, runCall } from '../answers/answer-call.js';
import { jsonOf } from '../answers/carrier.js';
import type { Exchange } from '../exchange.js';
import { isNotification, type Message } from '../message.js';
import type { EdgeParts, RungVerdict } from './rung.js';
import { insufficientScope } from './caller.js';

/** What the gates that know an agent alone refuse with. */
const GATE_CODES: ReadonlySet<unknown> = new Set(['permission_denied', 'tool_filtered', 'access_denied']);

type Shape = Agent['shape'];

/** Whether the gates that know an agent alone let a message pass; what is no call of a tool is not theirs. */
export function isPermitted({ method, params }: Message, edge: EdgeParts, agent: Agent): boolean {
  const name = member(params, 'name');
  if (method !== 'tools/call' || typeof name !== 'string') return true;
  return edge.kernel.permits(agent, name, member(params, 'arguments') ?? {});
}

/** The same caller, as the agent of another step. */
export function isPermittedTo(
  shape: Shape,
  message: Message,
  edge: EdgeParts,
  { principal }: Agent,
): boolean {
  return isPermitted(message, edge, new Agent({ shape, principal }));
}

/**
 * The nearest scopes with which the caller's agent would be one that may make this call, when its own may not. A tool that
 * none of those agents is shown is refused like any other.
 */
export function stepUpOf(message: Message, edge: EdgeParts, agent: Agent): StepUp | null {
  if (message.method !== 'tools/call' || isNotification(message)) return null;
  const above = edge.authenticator.stepsAbove(agent);
  if (above.length === 0 || isPermitted(message, edge, agent)) return null;
  return above.find(({ shape }) => isPermittedTo(shape, message, edge, agent)) ?? null;
}

/** The call is made all the same, so that it is counted and recorded like every other refusal; only its answer differs. */
export async function answerStepUp(
  { scopes }: StepUp,
  exchange: Exchange,
  edge: EdgeParts,
  agent: Agent,
): Promise<RungVerdict> {
  const { message } = exchange;
  const call = callOf(agent, message, exchange);
  exchange.onGone = () => call.abort('client_disconnect');
  if (exchange.isGone) exchange.onGone();
  const outcome = await runCall(call, exchange, edge, null);
  if (exchange.isGone) return 'gone';
  if (!('body' in outcome) || isScopeRefusal(outcome, message, edge, agent))
    return insufficientScope(edge, scopes, message.id);
  return outcome;
}

/**
 * Whether it was one of those gates that spoke, and not a limit before them. Of a tool that is listed only its tier can be
 * missing: whatever else it refuses for, such as a class that is hidden, is answered as if there were no scopes.
 */
export function isScopeRefusal(
  outcome: Outcome,
  { params }: Message,
  edge: EdgeParts,
  agent: Agent,
): boolean {
  if (!('body' in outcome)) return false;
  const result = member(JSON.parse(jsonOf(outcome)), 'result');
  const code = member(member(result, '_meta'), 'parse.error_code');
  const isListed = edge.kernel.permits(agent, String(member(params, 'name')), {});
  return isListed ? code === 'permission_denied' : GATE_CODES.has(code);
}
