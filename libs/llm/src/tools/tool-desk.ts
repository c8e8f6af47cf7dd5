import type { ProgressUpdate } from '#agent';
import type { JsonObject } from '#dispatcher';
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
