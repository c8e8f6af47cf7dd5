import {
  type CallHandler,
  type ExecutionContext,
  HttpException,
  Injectable,
  type NestInterceptor,
  StreamableFile,
} from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { defer, lastValueFrom, type Observable } from 'rxjs';
import { cutText, type Agent, Refused, McpRequest, Unauthorized } from '#core';
import type { ParleyToolRunner } from '#dispatcher';
import { onceClosed } from '#streaming';
import type { ToolCall, ToolDefinition, ToolOutcome } from '#tools';

/** A value that other code provides. */
class Later<T> {
  resolve!: (value: T) => void;
  reject!: (error: unknown) => void;
  readonly promise = new Promise<T>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });
}

/** A request to a route, in the form that Express and Fastify share. */
export interface RouteRequest {
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
  /** As it came, wherever the application is mounted. */
  readonly originalUrl?: string;
}

/** A request to a route whose caller is known. */
export interface AdmittedRequest {
  readonly definition: ToolDefinition;
  /** What serves the route. Controllers may inherit one method. */
  readonly served: { readonly controller: object; readonly handler: object };
  /** The class that it is recorded for, if any. */
  readonly className: string | undefined;
  /** The gates of the classes of the route. @throws Refused */
  readonly admit: (call: ToolCall) => Promise<void>;
  readonly agent: Agent;
  /** `X-Request-Id` of the request and of its answer. */
  readonly httpRequestId: string;
  readonly request: RouteRequest & object;
  /** The same request, as Node has it. */
  readonly message: IncomingMessage;
  readonly response: ServerResponse;
}

const calls = new WeakMap<object, RouteCall>();

/**
 * One request to a route of the application, as a call in the list that every call of a tool passes. The list runs up to
 * its handler while Nest runs guards, waits there for the handler of the route, and ends before the answer is sent.
 */
export class RouteCall {
  private readonly begun = new Later<ToolCall>();
  private readonly handled = new Later<unknown>();
  private readonly outcome: Promise<ToolOutcome>;
  private readonly served: AdmittedRequest['served'];
  private current: ToolCall | null = null;
  private isAnswering = false;

  /** @param toHttp the answer to an error of the call */
  private constructor(
    runner: ParleyToolRunner,
    { definition, served, className, admit, request, message }: AdmittedRequest,
    context: McpRequest,
    private readonly toHttp: (error: unknown) => unknown,
  ) {
    this.served = served;
    const handler = async (_: unknown, call: ToolCall) => {
      await admit(call);
      this.begun.resolve((this.current = call));
      return this.handled.promise;
    };
    // Nobody waits for it where a gate refuses.
    this.handled.promise.catch(() => undefined);
    this.outcome = runner.runUnlisted(
      { definition, handler },
      argumentsOf(request, className, message),
      context,
    );
    this.outcome.then(
      (outcome) =>
        this.begun.reject(outcome.ok ? new Error('the call is over') : new Refused(outcome.refusal)),
      (error: unknown) => this.begun.reject(error),
    );
  }

  /**
   * Begins the call of a request, which ends with its response.
   * @throws what `toHttp` makes of a refusal
   */
  static async begin(
    runner: ParleyToolRunner,
    admitted: AdmittedRequest,
    toHttp: (error: unknown) => unknown,
  ): Promise<void> {
    const { agent, httpRequestId, request, message, response } = admitted;
    const gone = new AbortController();
    const correlationId = agent.correlationId ?? undefined;
    const context = new McpRequest(agent, { signal: gone.signal, correlationId, httpRequestId });
    const call = new RouteCall(runner, admitted, context, toHttp);
    calls.set(request, call);
    onceClosed(message, response, () => {
      if (!response.writableFinished) gone.abort('client_disconnect');
      call.leave(response.statusCode);
    });
    if (response.destroyed) gone.abort('client_disconnect');
    try {
      await call.begun.promise;
    } catch (error) {
      throw toHttp(error);
    }
  }

  /** @throws TypeError for a request that no `ParleyGuard` admitted */
  static of(request: object): RouteCall {
    const call = calls.get(request);
    if (!call) throw new TypeError('the route has no ParleyGuard');
    return call;
  }

  /** Whether the request was admitted to the route that this method of the controller serves. */
  static isOf(request: object, controller: object, handler: object): boolean {
    const served = calls.get(request)?.served;
    return served?.controller === controller && served.handler === handler;
  }

  /** As the handler of a tool would receive it. */
  get call(): ToolCall {
    if (!this.current) throw new TypeError('the call has not passed its gates');
    return this.current;
  }

  /**
   * Runs the handler of the route. Its value is the answer once the call has been recorded.
   * @throws an error of the handler; what `toHttp` makes of a refusal
   */
  answer(next: CallHandler): Observable<unknown> {
    // A controller and its route may both have the decorator.
    if (this.isAnswering) return next.handle();
    this.isAnswering = true;
    return defer(() => this.answered(() => lastValueFrom(next.handle(), { defaultValue: undefined })));
  }

  private async answered(work: () => Promise<unknown>): Promise<unknown> {
    let value: unknown;
    let thrown: unknown = null;
    work().then(
      (returned) => this.handled.resolve(textual((value = returned))),
      (error: unknown) => this.handled.reject((thrown = error)),
    );
    try {
      const outcome = await this.outcome;
      if (outcome.ok) return value;
      // An error of the application is answered by its own filters, as on any other route.
      if (isOfApplication(thrown) && outcome.refusal.code !== 'audit_unavailable') throw thrown;
      throw new Refused(outcome.refusal);
    } catch (error) {
      throw error === thrown && isOfApplication(error) ? error : this.toHttp(error);
    }
  }

  /** The response has ended. Without the handler of the route something else answered: another guard, for one. */
  private leave(status: number): void {
    if (this.isAnswering) return;
    if (status < 400) this.handled.resolve(null);
    else this.handled.reject(new HttpException('answered before its route', status));
  }
}

const isOfApplication = (error: unknown): boolean =>
  error !== null && !(error instanceof Refused) && !(error instanceof Unauthorized);

/** What of the result is measured and searched as text: a file is not. */
function textual(value: unknown): unknown {
  const isFile = value instanceof StreamableFile || value instanceof Uint8Array;
  return isFile ? null : (value ?? null);
}

/** What the record has a digest of, and approvers see. */
function argumentsOf(
  { params, query, body, originalUrl }: RouteRequest,
  className: string | undefined,
  message: IncomingMessage,
): object {
  // One method of a controller may serve several methods of HTTP, and several paths.
  const [path = ''] = (originalUrl ?? message.url ?? '').split('?');
  const given = {
    class_name: className,
    request: `${message.method ?? ''} ${path}`,
    params,
    query,
    body,
    unread_body: describeUnread(message, body),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => !isEmpty(value)));
}

/**
 * A body that no parser has read into `body`, as that of an upload, or not all of it. What it holds is unknown here, so it is equal to
 * no other: an approval is for this request alone.
 */
function describeUnread({ headers, readableEnded }: IncomingMessage, parsed: unknown): object | undefined {
  const { 'content-type': type, 'content-length': length, 'transfer-encoding': encoding } = headers;
  const hasBody = encoding !== undefined || Number(length ?? 0) > 0;
  const isParsed = readableEnded && parsed !== undefined && parsed !== null && !MULTIPART.test(type ?? '');
  if (!hasBody || isParsed) return undefined;
  return {
    ...(type !== undefined && { content_type: cutText(type, 200) }),
    ...(length !== undefined && { bytes: Number(length) }),
    id: randomUUID(),
  };
}

/** Parsers keep its files elsewhere than in `body`. */
const MULTIPART = /^\s*multipart\//i;

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0);

/** Runs around the handler of a route with `@RequirePermission`: the answer waits for the record of its call. */
@Injectable()
export class RouteInterceptor implements NestInterceptor {
  /** @throws TypeError for a route without `ParleyGuard` */
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return RouteCall.of(context.switchToHttp().getRequest<IncomingMessage>()).answer(next);
  }
}
