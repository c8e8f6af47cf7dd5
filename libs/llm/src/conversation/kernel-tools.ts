import type { Agent, ProgressUpdate } from '#agent';
import {
  type ClientLink,
  isJsonObject,
  type JsonObject,
  type Kernel,
  type KernelReply,
  member,
} from '#dispatcher';
import type { OfferedTool } from '../model/language-model.js';

/** What a tool answered, as the protocol says it. */
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

/** Where the tools of a conversation are: always behind the gates of an agent. */
export abstract class ToolDesk {
  abstract list(signal: AbortSignal): Promise<readonly OfferedTool[]>;
  /** Refusals and faults are replies. @throws the reason of the signal */
  abstract call(name: string, args: JsonObject, watch: ToolWatch): Promise<ToolReply>;
}

export interface KernelToolsOptions {
  readonly kernel: Kernel;
  /** Asked before every request, so that a session that has ended ends here too. @throws Unauthorized */
  readonly agent: () => Promise<Agent>;
  /** Threads the records of this conversation. */
  readonly correlationId?: string;
  /** Where a person can be asked. Default: nobody can, and what needs a yes is refused. */
  readonly person?: ClientLink;
}

/** A revision with sessions, cursors and structured results. */
const PROTOCOL = { era: 'legacy', version: '2025-11-25' } as const;
const MAX_DESCRIPTION = 1_024;
/** Pages of a listing: a catalogue that never ends is not read to its end. */
const MAX_PAGES = 50;

/** The tools of the kernel of this process, as one agent may use them; every gate and record is that of any other client. */
export class KernelTools extends ToolDesk {
  private requests = 0;

  constructor(private readonly parts: KernelToolsOptions) {
    super();
  }

  async list(signal: AbortSignal): Promise<readonly OfferedTool[]> {
    const tools: OfferedTool[] = [];
    let cursor: unknown;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const reply = await this.dispatch('tools/list', cursor === undefined ? {} : { cursor }, { signal });
      if (!('result' in reply)) throw new Error(`the tools could not be listed: ${errorOf(reply)}`);
      const listed = member(reply.result, 'tools');
      if (Array.isArray(listed)) tools.push(...listed.filter(isJsonObject).map(offered));
      cursor = member(reply.result, 'nextCursor');
      if (cursor === undefined) break;
    }
    return tools;
  }

  async call(name: string, args: JsonObject, watch: ToolWatch): Promise<ToolReply> {
    const reply = await this.dispatch('tools/call', { name, arguments: args }, watch);
    watch.signal.throwIfAborted();
    if (!('result' in reply)) {
      const error = 'error' in reply ? { ...reply.error } : {};
      return { text: errorOf(reply), failed: true, result: { error } };
    }
    const { result } = reply;
    return { text: textOf(result), failed: member(result, 'isError') === true, result };
  }

  /** Any method of the protocol, as this agent. Never throws for what is refused. */
  async dispatch(
    method: string,
    params: JsonObject,
    { signal, onProgress }: ToolWatch,
  ): Promise<KernelReply> {
    const { kernel, agent, correlationId, person } = this.parts;
    this.requests += 1;
    return kernel.dispatch(method, params, {
      ...PROTOCOL,
      agent: await agent(),
      signal,
      requestId: this.requests,
      clientCapabilities: person ? { elicitation: { form: {} } } : {},
      ...(correlationId !== undefined && { correlationId }),
      ...(person && { link: person }),
      progress: (update) => onProgress?.(update),
    });
  }
}

function offered(tool: JsonObject): OfferedTool {
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

function textOf(result: JsonObject): string {
  const { content } = result;
  const blocks: unknown[] = Array.isArray(content) ? content : [];
  const texts = blocks.map((block) => member(block, 'text'));
  return texts.find((text): text is string => typeof text === 'string') ?? JSON.stringify(result);
}

const errorOf = (reply: KernelReply) => ('error' in reply ? reply.error.message : 'no answer');
