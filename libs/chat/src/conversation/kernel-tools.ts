import {
  type Agent,
  type ClientLink,
  McpRequest,
  type ProgressUpdate,
  isJsonObject,
  type JsonObject,
  member,
} from '#core';
import { type Kernel, type KernelReply } from '#dispatcher';
import type { OfferedTool } from '../model/language-model.js';

/** The answer of a tool. */
export interface ToolReply {
  /** The first text of the result, else the result as JSON, else the error. */
  readonly text: string;
  readonly failed: boolean;
  /** The whole result, or the error. */
  readonly result: JsonObject;
}

export interface ToolWatch {
  readonly signal: AbortSignal;
  readonly onProgress?: (update: ProgressUpdate) => void;
}

/** The tools of a conversation, always with the gates of an agent. */
export type ChatTools = Pick<KernelTools, 'list' | 'call'>;

export interface KernelToolsOptions {
  readonly kernel: Kernel;
  /** Called before every request, so that an ended session ends the conversation. @throws Unauthorized */
  readonly agent: () => Promise<Agent>;
  /** Correlation id of the conversation's audit records. */
  readonly correlationId?: string;
  /** Of the HTTP request within which the conversation is held, for the same records. */
  readonly httpRequestId?: string | undefined;
  /** The person who answers elicitations. Default: none, and calls that need an approval are refused. */
  readonly person?: ClientLink;
  /** Called before each call of a tool, with its number among them. */
  readonly onCall?: (name: string, number: number) => void;
}

/** A revision with sessions, cursors and structured results. */
const PROTOCOL = { era: 'legacy', version: '2025-11-25' } as const;
const MAX_DESCRIPTION = 1_024;
/** Maximum pages of a listing. */
const MAX_PAGES = 50;

/** Calls the tools of this process's kernel as one agent. Gates and audit are those of any other client. */
export class KernelTools {
  private requests = 0;
  private calls = 0;

  constructor(private readonly options: KernelToolsOptions) {}

  async list(signal: AbortSignal): Promise<readonly OfferedTool[]> {
    const tools: OfferedTool[] = [];
    let cursor: unknown;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const reply = await this.dispatch('tools/list', cursor === undefined ? {} : { cursor }, { signal });
      if (!('result' in reply)) throw new Error(`the tools could not be listed: ${describeReply(reply)}`);
      const listed = member(reply.result, 'tools');
      if (Array.isArray(listed)) tools.push(...listed.filter(isJsonObject).map(toOfferedTool));
      cursor = member(reply.result, 'nextCursor');
      if (cursor === undefined) break;
    }
    return tools;
  }

  /** Refusals and errors are replies. @throws the reason of the signal */
  async call(name: string, args: JsonObject, watch: ToolWatch): Promise<ToolReply> {
    this.calls += 1;
    this.options.onCall?.(name, this.calls);
    const reply = await this.dispatch('tools/call', { name, arguments: args }, watch);
    watch.signal.throwIfAborted();
    if (!('result' in reply)) {
      const error = 'error' in reply ? { ...reply.error } : {};
      return { text: describeReply(reply), failed: true, result: { error } };
    }
    const { result } = reply;
    return { text: readResultText(result), failed: member(result, 'isError') === true, result };
  }

  /** Calls a method of the protocol as this agent. Refusals are replies. */
  async dispatch(
    method: string,
    params: JsonObject,
    { signal, onProgress }: ToolWatch,
  ): Promise<KernelReply> {
    const { kernel, agent, correlationId, httpRequestId, person } = this.options;
    this.requests += 1;
    const transport = {
      ...PROTOCOL,
      signal,
      requestId: this.requests,
      clientCapabilities: person ? { elicitation: { form: {} } } : {},
      correlationId,
      httpRequestId,
      link: person,
      progress: onProgress,
    };
    return kernel.dispatch(method, params, new McpRequest(await agent(), transport));
  }
}

function toOfferedTool(tool: JsonObject): OfferedTool {
  const { name, description, inputSchema, annotations } = tool;
  return {
    name: String(name),
    description: Array.from(typeof description === 'string' ? description : '')
      .slice(0, MAX_DESCRIPTION)
      .join(''),
    parameters: isJsonObject(inputSchema) ? inputSchema : { type: 'object', properties: {} },
    readOnly: member(annotations, 'readOnlyHint') === true,
  };
}

function readResultText(result: JsonObject): string {
  const { content } = result;
  const blocks: unknown[] = Array.isArray(content) ? content : [];
  const texts = blocks.map((block) => member(block, 'text'));
  return texts.find((text): text is string => typeof text === 'string') ?? JSON.stringify(result);
}

const describeReply = (reply: KernelReply) => ('error' in reply ? reply.error.message : 'no answer');
