import { Inject, Injectable } from '@nestjs/common';
import {
  cutText,
  isExactNumber,
  type Refusal,
  refusals,
  Refused,
  type McpRequest,
  toSentCode,
  type CallApproval,
  isJsonObject,
  type JsonObject,
  member,
} from '#core';
import { suggestNames } from '#policy';
import { type ContentBlock, type ToolDefinition, type ToolOutcome, ToolRunner } from '#tools';
import { ContinuesAsTask } from '../calls/tool-call.js';
import {
  declaresTasks,
  type Dialect,
  headerMismatch,
  invalidParams,
  RequestFailure,
  readDialect,
  RETRY_AFTER_KEY,
  RPC,
  UnbegunCall,
} from '../protocol.js';
import { createdTask, TaskStore } from '../tasks/task-store.js';
import { RenderedLists } from './list-tools.js';
import { InputRound } from '../client-requests/client-requests.js';
import { McpMethod } from './method.js';

/** Refusals of gates that do not depend on the tool: a caller over its limit receives this refusal for any tool. */
const BEFORE_THE_TOOL: ReadonlySet<string> = new Set(['rate_limited', 'audit_unavailable']);

/** Milliseconds in which an optional task is answered like any other call. */
const TASK_TIMEOUT = 500;

/** `tools/call`: passes the call to the tool pipeline and formats its outcome. */
@Injectable()
export class CallTool {
  /** @param taskStore null: no call continues as a task */
  constructor(
    private readonly runner: ToolRunner,
    private readonly catalogue: RenderedLists,
    @Inject(TaskStore) private readonly taskStore: TaskStore | null,
  ) {}

  @McpMethod('tools/call', { asksAbout: 'name' })
  async handle(params: JsonObject, request: McpRequest): Promise<JsonObject | RequestFailure> {
    const { name } = params;
    const dialect = readDialect(request);
    if (typeof name !== 'string') throw invalidParams('Missing tool name');
    const modern = dialect.era === 'modern';
    // In revisions up to 2025-06-18 the tool gate answers.
    if (dialect.additions && !this.runner.find(name)) return this.unknown(name, params, request);
    const args = params.arguments ?? {};
    if (!isJsonObject(args)) {
      const refusal = modern ? refusals.invalidArgument('arguments must be an object') : null;
      throw new UnbegunCall(invalidParams(), refusal);
    }
    if (modern && request.transport.parameterHeader) {
      const tool = this.catalogue.for(request).find(name);
      if (tool) checkParameterHeaders(tool, args, request);
    }
    const offered = this.taskStore !== null && declaresTasks(request);
    try {
      const outcome = await this.runner.run(
        name,
        args,
        offered ? request.with({ background: 'offered' }) : request,
      );
      return toolResult(outcome, dialect, request);
    } catch (signal) {
      if (!(signal instanceof ContinuesAsTask) || !this.taskStore) throw signal;
      return await this.begin(this.taskStore, name, args, request, signal.approval).catch(
        (error: unknown) => {
          if (!(error instanceof Refused)) throw error;
          // A task store that refuses a call refuses it like a gate.
          return createFailedResult(error.refusal, request.httpRequestId);
        },
      );
    }
  }

  /** Counted and recorded like any other call: a failure, unless a guard before the tool guard refuses. */
  private async unknown(
    name: string,
    params: JsonObject,
    request: McpRequest,
  ): Promise<JsonObject | RequestFailure> {
    const outcome = await this.runner.run(name, params.arguments ?? {}, request);
    if (!outcome.ok && BEFORE_THE_TOOL.has(outcome.refusal.code))
      return toolResult(outcome, readDialect(request), request);
    const usable = this.runner.list(request).map((tool) => tool.name);
    const near = suggestNames(name, usable).map((tool) => `'${tool}'`);
    const meant = near.length > 0 ? `. Did you mean ${near.join(' or ')}?` : '';
    const message = `Unknown tool: ${cutText(name, 128)}${meant}`;
    return new RequestFailure({ code: RPC.invalidParams, message }, 200);
  }

  /** Answers a fast call at once, and any other call with its task, which outlives this request. */
  private async begin(
    store: TaskStore,
    tool: string,
    args: JsonObject,
    request: McpRequest,
    approval: CallApproval | undefined,
  ): Promise<JsonObject> {
    const { agent, correlationId, telemetry, transport } = request;
    const { version = readDialect(request).version, clientCapabilities: capabilities = {} } = transport;
    const round = request.clientRequests?.granted;
    const began = telemetry?.traceParent;
    const optional = this.runner.find(tool)?.task === 'optional';
    const state = await store.start(
      {
        agent,
        tool,
        args,
        version,
        capabilities,
        ...(correlationId !== undefined && { correlationId }),
        ...(began !== undefined && { began }),
        ...(round instanceof InputRound && { soFar: round.soFar }),
        ...(approval && { approval }),
      },
      optional ? TASK_TIMEOUT : 0,
    );
    if (state.status === 'completed' && state.result && optional) return state.result;
    return createdTask(state);
  }
}

const text = (value: string) => [{ type: 'text', text: value }];

function errorMeta(refusal: Refusal): JsonObject {
  const details = refusal.details ?? refusal.applicationDetails;
  return {
    'parse.error_code': toSentCode(refusal.code),
    ...(refusal.retryAfter !== undefined && { [RETRY_AFTER_KEY]: refusal.retryAfter }),
    ...(details !== undefined && { 'parse.details': details }),
  };
}

/** A failed call. `cause` and `gate` of the refusal stay internal. @param requestId what a person can ask the operator about */
function createFailedResult(
  refusal: Refusal,
  requestId: string | undefined,
  shown = refusal.message,
): JsonObject {
  const named = requestId !== undefined && { 'parse.request_id': requestId };
  return {
    content: text(shown),
    isError: true,
    ...(!refusal.wordsOnly && { _meta: { ...errorMeta(refusal), ...named } }),
  };
}

function createCancelledResult(message: string): JsonObject {
  return { content: text(message), isError: true, cancelled: true };
}

/**
 * The outcome of a call in the format of a revision.
 * @throws ProtocolError for a refusal that must reveal nothing to the caller
 */
export function toolResult(
  outcome: ToolOutcome,
  dialect: Dialect,
  request: Pick<McpRequest, 'aborted' | 'signal' | 'httpRequestId'>,
): JsonObject {
  if (!outcome.ok && outcome.refusal.code === 'cancelled')
    return createCancelledResult(outcome.refusal.message);
  if (request.aborted) return createCancelledResult(refusals.cancelled(request.signal.reason).message);
  if (!outcome.ok) {
    if (outcome.refusal.opaque) throw invalidParams();
    return createFailedResult(outcome.refusal, request.httpRequestId, outcome.text);
  }
  const structured =
    outcome.structured && dialect.structured && (dialect.anyStructuredRoot || isJsonObject(outcome.data));
  return {
    content: outcome.blocks?.map((block) => blockIn(dialect, block)) ?? text(outcome.text),
    isError: false,
    ...(structured && { structuredContent: outcome.data }),
  };
}

/** A content block in the format of a revision. A block type that the revision lacks becomes text. */
export function blockIn(dialect: Dialect, block: ContentBlock): ContentBlock {
  if (block.type === 'audio' && dialect.version < '2025-03-26')
    return { type: 'text', text: `[audio, ${block.mimeType}]` };
  if (block.type === 'resource_link' && dialect.version < '2025-06-18')
    return { type: 'text', text: `${block.name}: ${block.uri}` };
  return block;
}

/** A parameter whose schema requires a `Mcp-Param-<header>` copy, by `x-mcp-header`. */
interface MirroredParameter {
  readonly path: readonly string[];
  readonly header: string;
}

const DECIMAL = /^-?\d+(?:\.\d+)?$/;
const mirrored = new WeakMap<ToolDefinition, readonly MirroredParameter[]>();

/** Only chains of `properties` count: elsewhere the value has no fixed place. */
function collect(schema: unknown, path: readonly string[], found: MirroredParameter[]): void {
  const properties = member(schema, 'properties');
  if (!isJsonObject(properties)) return;
  for (const [name, property] of Object.entries(properties)) {
    const header = member(property, 'x-mcp-header');
    if (typeof header === 'string' && header !== '') found.push({ path: [...path, name], header });
    collect(property, [...path, name], found);
  }
}

function listMirroredParameters(tool: ToolDefinition): readonly MirroredParameter[] {
  let known = mirrored.get(tool);
  if (!known) {
    const found: MirroredParameter[] = [];
    collect(tool.inputSchema, [], found);
    known = found;
    mirrored.set(tool, known);
  }
  return known;
}

function sameValue(header: string, value: unknown): boolean {
  if (typeof value === 'number')
    return DECIMAL.test(header) && isExactNumber(header) && Number(header) === value;
  return header === String(value);
}

/**
 * Compares the annotated parameters of a call with their headers. An argument that is absent, null or not a plain value
 * needs no header.
 * @throws ProtocolError -32020
 */
function checkParameterHeaders(tool: ToolDefinition, args: JsonObject, context: McpRequest): void {
  const read = context.transport.parameterHeader;
  if (!read) return;
  for (const { path, header } of listMirroredParameters(tool)) {
    const value = path.reduce<unknown>((at, name) => member(at, name), args);
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') continue;
    const sent = read(header);
    const decoded = sent === undefined ? undefined : decodeHeaderValue(sent);
    if (decoded === undefined || !sameValue(decoded, value))
      throw new UnbegunCall(headerMismatch(`Mcp-Param-${header}`));
  }
}

const SENTINEL = '=?base64?';
const SENTINEL_END = '?=';
const CANONICAL_BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const PLAIN_TEXT = /^[\x20-\x7e\t]*$/;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of a mirroring header, plain or as `=?base64?…?=`; `undefined` when it is neither. */
export function decodeHeaderValue(header: string): string | undefined {
  const value = header.trim();
  if (!value.startsWith(SENTINEL) || !value.endsWith(SENTINEL_END)) {
    return PLAIN_TEXT.test(value) ? value : undefined;
  }
  const encoded = value.slice(SENTINEL.length, -SENTINEL_END.length);
  if (!CANONICAL_BASE64.test(encoded)) return undefined;
  try {
    return utf8.decode(Buffer.from(encoded, 'base64'));
  } catch {
    return undefined;
  }
}
