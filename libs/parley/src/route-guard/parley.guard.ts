import {
  type CanActivate,
  type ExecutionContext,
  Inject,
  Injectable,
  Logger,
  type Type,
} from '@nestjs/common';
import { HttpAdapterHost, ModuleRef } from '@nestjs/core';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, Refused } from '#core';
import { Authenticator } from '#auth';
import { faultReport, ParleyToolRunner } from '#dispatcher';
import { toolGate } from '#policy';
import {
  authenticateCaller,
  type CallerChecks,
  McpEdge,
  nameRequest,
  type NotServed,
  readTrustedHeaders,
  scopesLacking,
  setCaller,
  toRefusal,
} from '#streaming';
import type { ToolCall, ToolDefinition } from '#tools';
import { getParleyToken, type Parley } from '../module/parley.js';
import { type AdmittedRequest, RouteCall, type RouteRequest } from './route-call.js';
import { admitClasses, type DeclaredRoute, readRoute } from './route-decorators.js';
import { ParleyHttpException, refusedOverHttp } from './route-refusal.js';

/**
 * Admits a request to a route of the application as Parley admits the call of a tool: the same keys, tiers, tool filters,
 * limits, approvals and audit records (docs/guide/module.md#own-routes). `@RequirePermission` says what the route requires; a
 * route without it is refused, and so is the start of an application that has one.
 */
@Injectable()
export class ParleyGuard implements CanActivate {
  private readonly logger = new Logger(ParleyGuard.name);

  constructor(
    @Inject(ModuleRef) private readonly modules: ModuleRef,
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
  ) {}

  /**
   * Called by Nest before the handler of a route.
   * @throws ParleyHttpException for a refusal. @throws TypeError for a route without a permission
   */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const controller: Type = context.getClass();
    const handler = context.getHandler() as (...args: never[]) => unknown;
    const route = readRoute(controller, handler);
    if (context.getType() !== 'http') throw new TypeError('ParleyGuard guards routes of HTTP alone');
    if (!route) throw new TypeError(`${controller.name}: a route with ParleyGuard has no @RequirePermission`);
    const http = context.switchToHttp();
    const request = http.getRequest<RouteRequest & object>();
    // The guard may stand twice. A request that another route passed on has not been judged for this one.
    if (RouteCall.isOf(request, controller, handler)) return true;
    await this.admit(route, { controller, handler }, request, http.getResponse<object>());
    return true;
  }

  private async admit(
    { instance, definition, uses }: DeclaredRoute,
    served: AdmittedRequest['served'],
    request: RouteRequest & object,
    response: object,
  ): Promise<void> {
    const parley = this.modules.get<Parley>(getParleyToken(instance), { strict: false });
    const checks = { edge: parley.get(McpEdge), authenticator: parley.get(Authenticator) };
    const message = plainOf<IncomingMessage>(request);
    let agent: Agent | null = null;
    const refuse = (error: unknown) => {
      const refused = this.refused(error, { checks, message, definition, agent });
      for (const [name, value] of Object.entries(refused.headers))
        this.host.httpAdapter.setHeader(response, name, value);
      return refused;
    };
    const plain = plainOf<ServerResponse>(response);
    try {
      agent = await authenticateCaller(checks, message, plain);
    } catch (error) {
      throw refuse(error);
    }
    setCaller(request, agent);
    const admitted = {
      definition,
      served,
      className: uses[0]?.className,
      admit: (call: ToolCall) => admitClasses(uses, call),
      agent,
      httpRequestId: nameRequest(message, plain),
      request,
      message,
      response: plain,
    };
    await RouteCall.begin(parley.get(ParleyToolRunner), admitted, refuse);
  }

  private refused(
    error: unknown,
    { checks, message, definition, agent }: RefusedRequest,
  ): ParleyHttpException {
    if (error instanceof Refused) {
      const lacking = agent && lackingScopes(checks.authenticator, agent, definition);
      return refusedOverHttp(error.refusal, lacking?.headers);
    }
    const refused = toRefusal(error, checks.authenticator, readTrustedHeaders(message));
    if (refused) return new ParleyHttpException(refused.status, { error: refused.message }, refused.headers);
    this.logger.error(faultReport(`${definition.name} failed:`, error));
    return new ParleyHttpException(500, { error: 'Internal error' });
  }
}

interface RefusedRequest {
  readonly checks: CallerChecks;
  readonly message: IncomingMessage;
  readonly definition: ToolDefinition;
  readonly agent: Agent | null;
}

/** Fastify wraps requests and responses of Node; those of Express are Node's. */
const plainOf = <T>(wrapped: object): T => ((wrapped as { readonly raw?: T }).raw ?? wrapped) as T;

/** The challenge for a caller whose gates would pass with more scopes, as MCP answers it; null where none would help. */
function lackingScopes(authenticator: Authenticator, agent: Agent, tool: ToolDefinition): NotServed | null {
  const { principal } = agent;
  const passes = (as: Agent) => toolGate(as, tool.name, tool, () => []) === null;
  if (passes(agent)) return null;
  return scopesLacking(authenticator, agent, (definition) => passes(new Agent({ definition, principal })));
}
