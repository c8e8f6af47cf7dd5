import { type FactoryProvider, Inject, Injectable, Logger, type Provider } from '@nestjs/common';
import {
  cutText,
  type Agent,
  type Era,
  inexactIn,
  isFailure,
  isLogLevel,
  type Refusal,
  Refused,
  Unauthorized,
  type McpRequest,
  isJsonObject,
  type JsonObject,
  member,
} from '#core';
import { oneLine } from '#audit';
import { refuseTornText } from '#policy';
import { SharedStateUnavailable, SuspendedAgents } from '#state';
import { ToolRunner } from '#tools';
import { InputRounds } from './client-requests/input-rounds.js';
import { UnbegunCalls } from './calls/unbegun-calls.js';
import { CallTool, toolResult } from './methods/call-tool.js';
import { Handshake } from './methods/handshake.js';
import { ListToolsMethod, RenderedLists } from './methods/list-tools.js';
import { KERNEL_OPTIONS, type KernelOptions, type Method, listMcpMethods } from './methods/method.js';
import { Complete, PromptMethods } from './methods/prompt-methods.js';
import { ListResources, ProvidedResources, ReadResource } from './methods/resource-methods.js';
import { SubscriptionMethods } from './methods/subscription-methods.js';
import {
  type Dialect,
  findDialect,
  faultLine,
  faultReport,
  type WarningLog,
  type KernelFailure,
  type KernelReply,
  PreparedResult,
  RequestFailure,
  StreamedResult,
  invalidParams,
  methodNotFound,
  ProtocolError,
  readDialect,
  RPC,
  LOG_LEVEL_KEY,
  UnbegunCall,
  ResultEnvelope,
} from './protocol.js';
import { TaskMethods } from './tasks/task-store.js';

/** The classes whose methods answer MCP methods (`@McpMethod`). A method that none of them answers is not found. */
const METHOD_HANDLERS = [
  Handshake,
  ListToolsMethod,
  CallTool,
  ListResources,
  ReadResource,
  PromptMethods,
  Complete,
  SubscriptionMethods,
  TaskMethods,
] as const;

/** All methods by name; none for a name that no revision has. */
export class MethodTable extends Map<string, Method> {
  /** @param rounds sends client requests of running calls; null: client requests are not supported */
  constructor(handlers: readonly object[], rounds: InputRounds | null) {
    super(
      handlers
        .flatMap(listMcpMethods)
        .map((method) => [method.name, rounds ? asking(method, rounds) : method]),
    );
  }
}

/** The method with client requests in its calls, where its answer may be one. */
function asking(method: Method, rounds: InputRounds): Method {
  const { name, asksAbout, handle } = method;
  if (asksAbout === undefined) return method;
  return { ...method, handle: rounds.asking(name, (params) => params[asksAbout], handle) };
}

const NOTIFICATION = 'notifications/';
const CALLS = 'tools/call';
const SUSPENSION = 'suspension';
const NO_MEMBERS: JsonObject = Object.freeze({});
const NOTIFICATION_ACCEPTED = Object.freeze({ accepted: true } as const);

/**
 * The MCP dispatcher: it maps (method, params, request) to a reply, in every protocol revision, without a transport. It
 * never throws, whatever the params or the agent are.
 */
@Injectable()
export class Kernel {
  private readonly log: WarningLog;

  /** @internal Made by the module. */
  constructor(
    private readonly methods: MethodTable,
    private readonly envelope: ResultEnvelope,
    private readonly tools: ToolRunner,
    @Inject(SuspendedAgents) private readonly suspended: Pick<SuspendedAgents, 'assertActive'>,
    @Inject(UnbegunCalls) private readonly unbegun: Pick<UnbegunCalls, 'note'>,
    @Inject(KERNEL_OPTIONS) { log = new Logger('Kernel') }: KernelOptions,
  ) {
    this.log = log;
  }

  /** Whether a revision has a request of that name: lets a transport refuse before it authenticates. */
  serves(method: string, era: Era, version: string): boolean {
    const known = this.methods.get(method);
    return known !== undefined && existsIn(known, findDialect(era, version));
  }

  /**
   * Whether a call of this tool would pass every gate that depends on the agent alone. A transport checks it before it
   * returns a reason with a refusal.
   */
  permits(agent: Agent, tool: string, args: unknown): boolean {
    return this.tools.permits({ agent }, tool, args);
  }

  /** Answers one message. @param method `tools/call` and the like. @param params unvalidated */
  async dispatch(method: string, params: unknown, request: McpRequest): Promise<KernelReply> {
    try {
      return await this.answer(method, params, request);
    } catch (error) {
      const era = member(member(request, 'transport'), 'era') === 'modern' ? 'modern' : 'legacy';
      const fail = (thrown: unknown) => this.failure(thrown, era, nameAsked(method, params));
      return error instanceof UnbegunCall
        ? await this.refuseUnbegun(params, request, error).catch(fail)
        : fail(error);
    }
  }

  private async answer(method: string, params: unknown, request: McpRequest): Promise<KernelReply> {
    const { era = 'legacy', requestId } = request.transport;
    if (typeof method !== 'string') throw methodNotFound(String(JSON.stringify(method)));
    if (method.startsWith(NOTIFICATION) && (era === 'legacy' || requestId === undefined)) {
      if (requestId === undefined || requestId === null) return NOTIFICATION_ACCEPTED;
      throw new ProtocolError(
        RPC.invalidRequest,
        'Invalid Request: notifications must not carry an id',
        undefined,
        400,
      );
    }
    const known = this.methods.get(method);
    if (!known || !existsIn(known, readDialect(request))) throw methodNotFound(method);
    // The pipeline of tools refuses calls itself, and records them.
    const unread = method === CALLS ? undefined : this.suspended.assertActive(request.agent);
    if (unread) await unread;
    const handled = known.handle(this.checked(known.name, params, era), request);
    // A cached list is returned without another turn of the event loop.
    const result = handled instanceof Promise ? await handled : handled;
    if (result instanceof RequestFailure) return result;
    if (result instanceof PreparedResult || result instanceof StreamedResult) return result;
    return { result: this.envelope.complete(era, result, known.cache) };
  }

  /** @throws the error, where the answer is no result */
  private async refuseUnbegun(
    params: unknown,
    request: McpRequest,
    error: UnbegunCall,
  ): Promise<KernelReply> {
    const refusal = (await this.unbegun.note(params, request, error)) ?? error.refusal;
    if (!refusal) throw error;
    const result = toolResult({ ok: false, refusal }, readDialect(request), request);
    return { result: this.envelope.complete(request.transport.era ?? 'legacy', result, undefined) };
  }

  private checked(method: string, params: unknown, era: Era): JsonObject {
    if (params === undefined || params === null) return NO_MEMBERS;
    if (!isJsonObject(params)) throw invalidParams();
    const inexact = inexactIn(params);
    if (inexact !== undefined) throw refuseParams(method, `Invalid params: ${inexact}`);
    // A tool refuses its arguments itself, in its own answer.
    if (method !== CALLS) refuseTornText(params, 'params');
    if (era === 'modern') {
      const level = member(params._meta, LOG_LEVEL_KEY);
      if (level !== undefined && !isLogLevel(level)) throw refuseParams(method, 'Invalid log level');
    }
    return params;
  }

  private failure(error: unknown, era: Era, asked: string): KernelFailure {
    if (error instanceof ProtocolError) {
      const { code, message, data, status } = error;
      return {
        error: { code, message, ...(data !== undefined && { data }) },
        status: era === 'modern' ? status : 200,
      };
    }
    if (error instanceof Unauthorized) {
      return { error: { code: RPC.unauthorized, message: 'Unauthorized' }, status: 401 };
    }
    if (error instanceof Refused && isCausedByCaller(error.refusal)) {
      const { opaque, code, message, gate } = error.refusal;
      if (gate === SUSPENSION)
        return { error: { code: RPC.unauthorized, message }, status: era === 'modern' ? 403 : 200 };
      const isReported = !opaque && code !== 'access_denied' && code !== 'security_blocked';
      return {
        error: { code: RPC.invalidParams, message: isReported ? message : 'Invalid params' },
        status: 200,
      };
    }
    // Nothing is wrong with the request: a transport says when to send it again.
    if (error instanceof SharedStateUnavailable) {
      this.warn(faultLine('', error));
      return { error: { code: RPC.busy, message: 'server busy' }, status: 503 };
    }
    this.warn(faultReport(`${asked} failed:`, error));
    return { error: { code: RPC.internalError, message: 'Internal error' }, status: 200 };
  }

  private warn(line: string): void {
    try {
      this.log.warn(line);
    } catch {
      // A log that throws must not fail the call.
    }
  }
}

/** What was asked, for the log: a prompt by its name, a resource by its scheme, which hold nothing of a person. */
function nameAsked(method: unknown, params: unknown): string {
  try {
    const [name, uri] = [member(params, 'name'), member(params, 'uri')];
    const named = typeof name === 'string' ? name : typeof uri === 'string' ? uri.replace(/:.*$/s, '') : '';
    return oneLine(`${String(method)} ${cutText(named, 64)}`.trim());
  } catch {
    return 'a request';
  }
}

function refuseParams(method: string, message: string): ProtocolError {
  const error = invalidParams(message);
  return method === CALLS ? new UnbegunCall(error) : error;
}

/** Refusals outside a tool that the caller caused, as opposed to internal or database errors. */
function isCausedByCaller({ code }: Refusal): boolean {
  return !isFailure(code);
}

/** @param version of the product */
export function createEnvelope(version: string): ResultEnvelope {
  return new ResultEnvelope(Object.freeze({ name: 'parley', version }));
}

/** Whether a revision has the method. */
function existsIn(method: Method, dialect: Dialect): boolean {
  if (dialect.era === 'modern') return method.modern;
  return method.legacySince !== null && dialect.version >= method.legacySince;
}

const methodTable: FactoryProvider<MethodTable> = {
  provide: MethodTable,
  useFactory: (rounds: InputRounds, ...handlers: object[]) => new MethodTable(handlers, rounds),
  inject: [InputRounds, ...METHOD_HANDLERS],
};

const envelope: FactoryProvider<ResultEnvelope> = {
  provide: ResultEnvelope,
  useFactory: ({ version }: KernelOptions) => createEnvelope(version),
  inject: [KERNEL_OPTIONS],
};

/** The kernel with every method, and what the methods share. */
export const KERNEL_PROVIDERS: readonly Provider[] = [
  envelope,
  RenderedLists,
  ProvidedResources,
  ...METHOD_HANDLERS,
  methodTable,
  Kernel,
];
