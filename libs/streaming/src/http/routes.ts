import {
  type ArgumentsHost,
  type CallHandler,
  Catch,
  createParamDecorator,
  type ExceptionFilter,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  type PipeTransform,
  type Type,
} from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Observable } from 'rxjs';
import { cutText, readJson, type RefusedJson } from '#core';
import { compileReader, type Given, listNames } from '#schema';
import { SharedStateUnavailable } from '#state';
import { ReceivedBody } from './http-exchange.js';
import { BODY_WORDS, ROUTE_WORDS } from './refusals.js';

type Headers = Readonly<Record<string, string>>;

/** The refusal of a request beside MCP: HTTP status, message and headers, all of which are returned. */
export class NotServed extends Error {
  override readonly name = 'NotServed';
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Headers = {},
  ) {
    super(message);
  }
}

/** A refusal of a route without JSON-RPC. */
export function notServed(status: number, headers: Headers = {}): NotServed {
  return new NotServed(status, ROUTE_WORDS[status] ?? String(ROUTE_WORDS[400]), headers);
}

/** Sends a whole answer. Node sends no body in an answer to HEAD. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Headers = {},
): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

/** Answers the errors of controllers: a refusal as it is; any other error is logged, and its text goes to nobody. */
@Catch()
export class RefusalFilter implements ExceptionFilter {
  /** @param log receives the error and the path of the request */
  constructor(private readonly log: (error: unknown, path: string) => void) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const response = http.getResponse<ServerResponse>();
    const refused = error instanceof NotServed ? error : null;
    if (!refused) this.log(error, http.getRequest<IncomingMessage>().url ?? '');
    if (response.headersSent) response.destroy();
    else {
      const { status, message, headers } = refused ?? notServed(500);
      sendJson(response, status, { error: message }, headers);
    }
  }
}

/** Answers that the shared state of the replicas cannot be reached. */
@Catch(SharedStateUnavailable)
export class SharedStateFilter implements ExceptionFilter {
  constructor(private readonly message: string) {}

  catch(_error: SharedStateUnavailable, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<ServerResponse>();
    if (response.headersSent) response.destroy();
    else sendJson(response, 503, { error: this.message }, { 'Retry-After': '5' });
  }
}

/** A signal that is aborted when the connection of the request closes, or closed while the guards ran. */
export const ClosedSignal = createParamDecorator((_: unknown, context: ExecutionContext): AbortSignal => {
  const gone = new AbortController();
  const response = context.switchToHttp().getResponse<ServerResponse>();
  if (response.destroyed) gone.abort();
  else response.on('close', () => gone.abort());
  return gone.signal;
});

/** Reads the body of a request as a small JSON object, for `@Body`. Guards have run before it: no caller without rights sends one. */
@Injectable()
export class JsonBodyInterceptor implements NestInterceptor {
  protected readonly maxBytes: number = MAX_BODY;

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const request = context.switchToHttp().getRequest<IncomingMessage & { body?: unknown }>();
    request.body = await readSmallJson(request, this.maxBytes);
    return next.handle();
  }
}

/** The same for a body that holds a file. */
@Injectable()
export class LongJsonBodyInterceptor extends JsonBodyInterceptor {
  protected override readonly maxBytes = MAX_LONG_BODY;
}

/**
 * Makes an instance of the class of a body or a query. The first error is the answer, in the words of its decorator. A member that the
 * class does not have is refused: a misspelt bound must not mean everything. A parameter may be repeated where the class begins with a
 * list for it.
 */
export function createValidationPipe<T extends object>(type: Type<T>): PipeTransform<Given, T> {
  const [status] = BODY_WORDS.notObject;
  const read = compileReader(type, (message) => {
    throw new NotServed(status, message);
  });
  const listed = new Set(
    Object.entries(new type()).flatMap(([name, value]) => (Array.isArray(value) ? [name] : [])),
  );
  const names = listNames(type);
  return {
    transform(given, { type: place }) {
      const unknown = Object.keys(given).find((name) => !names.includes(name));
      const what = place === 'query' ? 'parameter' : 'member';
      if (unknown !== undefined)
        throw new NotServed(status, `unknown ${what} '${cutText(unknown, 40)}', known: ${names.join(', ')}`);
      const repeated = Object.entries(given).find(
        ([name, value]) => Array.isArray(value) && !listed.has(name),
      );
      if (place === 'query' && repeated)
        throw new NotServed(status, `${cutText(repeated[0], 40)} is given more than once`);
      return read(given);
    },
  };
}

/** Bytes. */
const MAX_BODY = 16_384;
const MAX_LONG_BODY = 1_048_576;
const JSON_TYPE = /^application\/json\s*(;|$)/i;

/**
 * Reads a small JSON object. Only the JSON content type is accepted: a form of another site cannot send it without a
 * preflight request.
 * @throws NotServed
 */
async function readSmallJson(
  request: IncomingMessage,
  maxBytes: number,
): Promise<Readonly<Record<string, unknown>>> {
  if (!JSON_TYPE.test(request.headers['content-type'] ?? '')) throw new NotServed(...BODY_WORDS.notJson);
  const reading = readJson(await readText(request, maxBytes));
  if (!reading.ok) throw new NotServed(...describeRefusedBody(reading));
  const { value } = reading;
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw new NotServed(...BODY_WORDS.notObject);
  return value as Record<string, unknown>;
}

function describeRefusedBody({ fault, why }: RefusedJson): readonly [number, string] {
  if (fault === 'syntax') return BODY_WORDS.notObject;
  return fault === 'depth' ? BODY_WORDS.tooDeep : [400, `body: ${why}`];
}

/** @throws NotServed for a body that is too large, and for one whose sender left in the middle of it */
async function readText(request: IncomingMessage, maxBytes: number): Promise<string> {
  const received = new ReceivedBody(maxBytes);
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      if (received.size + chunk.length > maxBytes) throw new NotServed(...BODY_WORDS.tooLarge);
      received.add(chunk);
    }
  } catch (error) {
    if (error instanceof NotServed) throw error;
    throw new NotServed(...BODY_WORDS.notObject);
  }
  return received.toBuffer().toString('utf8');
}
