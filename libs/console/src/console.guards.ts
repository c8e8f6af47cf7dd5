import {
  applyDecorators,
  type ArgumentsHost,
  type CanActivate,
  Catch,
  Controller,
  createParamDecorator,
  type ExceptionFilter,
  type ExecutionContext,
  Inject,
  Injectable,
  Logger,
  type NestMiddleware,
  SetMetadata,
  type Type,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ErrorCode, Refused } from '#core';
import { StoreError } from '#data';
import { SharedStateUnavailable } from '#state';
import {
  ArrivalGuard,
  McpEdge,
  NotServed,
  RefusalFilter,
  SharedStateFilter,
  readTrustedHeaders,
} from '#streaming';
import { type Operator, OperatorGate } from './operator-gate.js';
import { crossSiteRefusal } from './operator-sessions.js';

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  // Text of a row must not become script even by a mistake of the page, which never makes markup from text.
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** Sent with every response of the console. */
const SECURITY_HEADERS = new Map([
  ['Content-Security-Policy', CONTENT_SECURITY_POLICY],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Permissions-Policy', 'camera=(), microphone=(), geolocation=()'],
  ['Cache-Control', 'no-store'],
]);

/** Sets the headers that keep a browser to the console. */
@Injectable()
export class SecurityHeadersMiddleware implements NestMiddleware {
  use(_request: IncomingMessage, response: ServerResponse, next: () => void): void {
    // A response of HTTP/2 has no `setHeaders`.
    for (const [name, value] of SECURITY_HEADERS) response.setHeader(name, value);
    next();
  }
}

/** Refuses what a browser sends for another site's page. */
@Injectable()
export class SameSiteGuard implements CanActivate {
  /** @throws NotServed */
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<IncomingMessage>();
    const refusal = crossSiteRefusal(readTrustedHeaders(request), request.method ?? '');
    if (refusal !== null) throw new NotServed(403, refusal);
    return true;
  }
}

const WITHOUT_SHARED_STATE = 'parley console without shared state';

/** A route that reads what this process knows itself. Every other one is refused while the shared state cannot be reached. */
export const WithoutSharedState = () => SetMetadata(WITHOUT_SHARED_STATE, true);

type RequestOfOperator = IncomingMessage & { operator?: Operator };

/** Admits operators. */
@Injectable()
export class OperatorGuard implements CanActivate {
  constructor(
    @Inject(OperatorGate) private readonly gate: OperatorGate,
    @Inject(McpEdge) private readonly edge: McpEdge,
    @Inject(Reflector) private readonly reflector: Reflector,
  ) {}

  /** @throws NotServed, SharedStateUnavailable */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<RequestOfOperator>();
    request.operator = await this.gate.admit(request);
    if (request.operator.degraded && this.reflector.get(WITHOUT_SHARED_STATE, context.getHandler()) !== true)
      throw new SharedStateUnavailable();
    this.edge.unread.own(http.getResponse<ServerResponse>(), request.operator.agent.principal);
    return true;
  }
}

/** The operator, behind `OperatorGuard`. */
export const CurrentOperator = createParamDecorator((_: unknown, context: ExecutionContext): Operator => {
  const { operator } = context.switchToHttp().getRequest<RequestOfOperator>();
  if (!operator) throw new TypeError('nobody was authenticated: the route has no OperatorGuard');
  return operator;
});

const logger = new Logger('Console');
const refusalFilter = new RefusalFilter((error) =>
  logger.error(`a console request failed: ${String(error)}`),
);

const STATUS: Partial<Record<ErrorCode, number>> = {
  invalid_argument: 400,
  not_found: 404,
  conflict: 409,
  approval_denied: 412,
  parse_error: 503,
  timeout: 504,
};

/** Answers what governed access refuses in its words, and which store does not answer. */
@Catch(Refused, StoreError)
class StoreFilter implements ExceptionFilter {
  catch(error: Refused | StoreError, host: ArgumentsHost): void {
    refusalFilter.catch(toNotServed(error) ?? error, host);
  }
}

function toNotServed(error: Refused | StoreError): NotServed | null {
  if (error instanceof Refused) {
    const { code, message } = error.refusal;
    if (code === 'internal_error') return null;
    // An agent reads that Parse failed; here it is said what did.
    const said = code === 'parse_error' ? message.replace(/^Parse error: /, '') : message;
    return new NotServed(STATUS[code as ErrorCode] ?? 403, said);
  }
  if (error.code !== 'unavailable' && error.code !== 'timeout') return null;
  return new NotServed(503, `${error.store} does not answer at the moment`, { 'Retry-After': '5' });
}

/** A controller of the console, with the answers to its errors. */
export function ConsoleController(path: string, ...guards: readonly Type<CanActivate>[]) {
  return applyDecorators(
    Controller(path),
    UseGuards(...guards),
    UseFilters(
      refusalFilter,
      new StoreFilter(),
      new SharedStateFilter('shared state cannot be reached at the moment'),
    ),
  );
}

/** A controller of the console API, for operators alone. */
export const OperatorController = (path: string) =>
  ConsoleController(path, ArrivalGuard, SameSiteGuard, OperatorGuard);
