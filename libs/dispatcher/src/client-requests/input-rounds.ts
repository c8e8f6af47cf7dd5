import { derivedRequest } from '#core';
import type { OneTimeStore } from '#state';
import { InputRound, LegacyAsks, ModernAsks, REPLAYED } from './client-requests.js';
import type { OpenedState, RequestStateSeal, StateSubject } from './request-state.js';
import type { Handled, MethodHandler, MethodRequest } from '../methods/method.js';
import { digestOf, isJsonObject, type JsonObject, invalidParams } from '../json-rpc.js';

export interface InputRoundsOptions {
  readonly seal: RequestStateSeal;
  /** The store of used decisions, shared by all replicas. */
  readonly oneTime: Pick<OneTimeStore, 'claim'>;
  /** Milliseconds that a client has to answer and that a state is valid. */
  readonly timeout: number;
}

/** Maximum number of rounds of one call: it ends a tool that never stops sending client requests. */
const MAX_ROUNDS = 32;

/** Gives the handlers of some methods access to client requests, in both eras. */
export class InputRounds {
  constructor(private readonly dependencies: InputRoundsOptions) {}

  /** Wraps a method that sends client requests: open requests are its answer until the client answers them. */
  asking(method: string, nameOf: (params: JsonObject) => unknown, handle: MethodHandler): MethodHandler {
    return (request) => {
      if (request.dialect.era === 'modern') return this.inRounds(method, nameOf, request, handle);
      const asks = new LegacyAsks(request.context, request.dialect, this.dependencies.timeout);
      return handle({ ...request, context: derivedRequest(request.context, { asks }) });
    };
  }

  private async inRounds(
    method: string,
    nameOf: (params: JsonObject) => unknown,
    request: MethodRequest,
    handle: MethodHandler,
  ): Promise<Handled> {
    const { params, context, dialect, capabilities } = request;
    const subject = subjectOf(method, nameOf(params), request);
    const responses = responsesOf(params);
    const state = await this.stateOf(params, subject);
    const round = new InputRound({
      state,
      responses,
      dialect,
      capabilities,
      useOnce: (name) =>
        this.dependencies.oneTime.claim(
          `decision:${name}`,
          this.dependencies.seal.longest,
          context.agent.principal,
        ),
    });
    const asks = new ModernAsks(round, { postpones: true });
    try {
      const result = await handle({ ...request, round, context: derivedRequest(context, { asks }) });
      // A handler that continued without its answers has no result yet.
      return round.isOpen ? await this.required(round, subject) : result;
    } catch (error) {
      if (!round.isOpen) throw error;
      return this.required(round, subject);
    }
  }

  private async required(round: InputRound, subject: StateSubject): Promise<JsonObject> {
    const requests = round.requests();
    const { soFar } = round;
    if (soFar.round > MAX_ROUNDS) throw invalidParams('Too many input rounds');
    const requestState = await this.dependencies.seal.seal(soFar, subject);
    if (requestState === undefined) throw invalidParams('Input responses are too large');
    const open = Object.keys(requests).length > 0 && { inputRequests: requests };
    return { resultType: 'input_required', ...open, requestState };
  }

  private async stateOf(params: JsonObject, subject: StateSubject): Promise<OpenedState | undefined> {
    const { requestState } = params;
    if (requestState === undefined) return undefined;
    const state =
      typeof requestState === 'string' ? await this.dependencies.seal.open(requestState, subject) : undefined;
    if (!state) throw invalidParams(REPLAYED);
    return state;
  }
}

/** @throws ProtocolFault when they are not keyed answers */
function responsesOf({ inputResponses }: JsonObject): JsonObject {
  if (inputResponses === undefined) return {};
  if (!isJsonObject(inputResponses)) throw invalidParams('inputResponses must be an object');
  return inputResponses;
}

function subjectOf(method: string, name: unknown, { params, context }: MethodRequest): StateSubject {
  const { agent } = context;
  return {
    principal: agent.principal,
    agent: agent.shape.name,
    tenant: agent.tenantId,
    method,
    name: typeof name === 'string' ? name : '',
    args: digestOf(params['arguments'] ?? {}),
  };
}
