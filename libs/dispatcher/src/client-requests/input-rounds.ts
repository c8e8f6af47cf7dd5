import { Inject, Injectable } from '@nestjs/common';
import { type McpRequest, toOwner, isJsonObject, type JsonObject } from '#core';
import { OneTimeStore } from '#state';
import {
  InputRound,
  LegacyClientRequests,
  ModernClientRequests,
  INVALID_REQUEST_STATE,
} from './client-requests.js';
import {
  CLIENT_ANSWER_OPTIONS,
  type ClientAnswerOptions,
  type OpenedState,
  RequestStateSeal,
  type StateSubject,
} from './request-state.js';
import type { Handled, MethodHandler } from '../methods/method.js';
import { computeDigest, invalidParams, ProtocolError, UnbegunCall } from '../protocol.js';

/** Maximum number of rounds of one call: it ends a tool that never stops sending client requests. */
const MAX_ROUNDS = 32;

/** Gives the handlers of some methods access to client requests, in both eras. */
@Injectable()
export class InputRounds {
  /** @param oneTime the store of used decisions, shared by all replicas */
  constructor(
    private readonly seal: RequestStateSeal,
    @Inject(OneTimeStore) private readonly oneTime: Pick<OneTimeStore, 'claim'>,
    @Inject(CLIENT_ANSWER_OPTIONS) private readonly options: Pick<ClientAnswerOptions, 'timeout'>,
  ) {}

  /** Wraps a method that sends client requests: open requests are its answer until the client answers them. */
  asking(method: string, nameOf: (params: JsonObject) => unknown, handle: MethodHandler): MethodHandler {
    return (params, request) => {
      if (request.transport.era === 'modern') {
        const subject = () => createSubject(method, nameOf(params), params, request);
        return this.inRounds(subject, params, request, handle);
      }
      const clientRequests = new LegacyClientRequests(request, this.options.timeout);
      return handle(params, request.with({ clientRequests }));
    };
  }

  private async inRounds(
    subject: () => StateSubject,
    params: JsonObject,
    request: McpRequest,
    handle: MethodHandler,
  ): Promise<Handled> {
    const { responses, state } = await this.readRound(params, subject);
    const round = new InputRound({
      state,
      responses,
      request,
      useOnce: (name) => this.oneTime.claim(`decision:${name}`, this.seal.longest, request.agent.principal),
    });
    const clientRequests = new ModernClientRequests(round, { postpones: true });
    try {
      const result = await handle(params, request.with({ clientRequests }));
      // A handler that continued without its answers has no result yet.
      return round.isOpen ? await this.required(round, subject) : result;
    } catch (error) {
      if (!round.isOpen) throw error;
      return this.required(round, subject);
    }
  }

  private async required(round: InputRound, subject: () => StateSubject): Promise<JsonObject> {
    const requests = round.requests();
    const { soFar } = round;
    if (soFar.round > MAX_ROUNDS) throw invalidParams('Too many input rounds');
    const requestState = await this.seal.seal(soFar, subject());
    if (requestState === undefined) throw invalidParams('Input responses are too large');
    const open = Object.keys(requests).length > 0 && { inputRequests: requests };
    return { resultType: 'input_required', ...open, requestState };
  }

  /** @throws ProtocolError, as `UnbegunCall` for the call of a tool: none of its gates has seen it */
  private async readRound(params: JsonObject, subject: () => StateSubject) {
    try {
      return { responses: readResponses(params), state: await this.readState(params, subject) };
    } catch (error) {
      throw error instanceof ProtocolError && subject().method === 'tools/call'
        ? new UnbegunCall(error)
        : error;
    }
  }

  private async readState(params: JsonObject, subject: () => StateSubject): Promise<OpenedState | undefined> {
    const { requestState } = params;
    if (requestState === undefined) return undefined;
    const state =
      typeof requestState === 'string' ? await this.seal.open(requestState, subject()) : undefined;
    if (!state) throw invalidParams(INVALID_REQUEST_STATE);
    return state;
  }
}

/** @throws ProtocolError when they are not keyed answers */
function readResponses({ inputResponses }: JsonObject): JsonObject {
  if (inputResponses === undefined) return {};
  if (!isJsonObject(inputResponses)) throw invalidParams('inputResponses must be an object');
  return inputResponses;
}

/** Digests the arguments: only a call that has rounds pays for that. A handler works on a copy, so it may come after the call. */
function createSubject(
  method: string,
  name: unknown,
  params: JsonObject,
  { agent }: McpRequest,
): StateSubject {
  return {
    ...toOwner(agent),
    method,
    name: typeof name === 'string' ? name : '',
    args: computeDigest(params['arguments'] ?? {}),
  };
}
