import type { AskingCall, CallContext, Refusal, Tier } from '#core';
import type { EmbeddingSpend } from '#audit';
import type {
  GovernedClassWrites,
  GovernedMethods,
  GovernedRecords,
  GovernedSearch,
  GovernedWrites,
} from '#data';
import type { EnvironmentGates } from '#policy';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** MCP tool annotations: hints to a host, never rules (MCP 2025-06-18, server/tools). */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** Reads the operator's own database: changes nothing, reaches nothing outside, may be repeated. */
export const READ_ONLY: ToolAnnotations = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };

/** The same, but what is looked for may be sent to the embeddings endpoint that the operator chose. */
export const READS_AND_EMBEDS: ToolAnnotations = { ...READ_ONLY, openWorldHint: true };

/** Shows rows and groups as a table and a chart (docs/guide/views.md). */
export const RESULTS_VIEW = 'ui://parley/results';

/** What a tool may do beyond reading. A tool is given only the doors it names. */
export const TOOL_NEEDS = ['rows', 'classes', 'methods'] as const;
export type ToolNeed = (typeof TOOL_NEEDS)[number];

export const TASK_SUPPORT = ['optional', 'required', 'on-demand'] as const;
export type TaskSupport = (typeof TASK_SUPPORT)[number];

/** What a tool is; behaviour is apart, on the provider that declares it. */
export interface ToolDefinition {
  /** Unique in the service. */
  readonly name: string;
  /** For people. Default: the name. */
  readonly title?: string;
  /** What a model chooses it by. */
  readonly description: string;
  /** Groups tools in listings. */
  readonly category: string;
  /** Lowest tier that may call it. */
  readonly permission: Tier;
  /** Seconds, at least 1. Default 30. */
  readonly timeout: number;
  /** Of its arguments, of type object. */
  readonly inputSchema: JsonSchema;
  /**
   * How the tool meets clients that follow tasks (docs/guide/tasks.md). `optional`: runs as a task, and is answered at once when it
   * is quick. `required`: only as a task; other clients are refused. `on-demand`: the handler says so by `continueAsTask`.
   * Default: never.
   */
  readonly task?: TaskSupport;
  /** Seconds that a run as a task may take. Default 600. */
  readonly taskTimeout?: number;
  /** When declared, results are also sent as `structuredContent`. */
  readonly outputSchema?: JsonSchema;
  /** Hints for clients; they open and close no gate. */
  readonly annotations?: ToolAnnotations;
  /** Address (`ui:`) of a page that shows the result, for hosts that show pages (docs/guide/views.md). The text tells everything too. */
  readonly view?: string;
  /** Callable by agents that act as a client without a master key. Default false. */
  readonly clientSafe: boolean;
  /** `rows`: changes objects. `classes`: makes and removes classes. `methods`: runs declared methods. Default none. */
  readonly needs?: readonly ToolNeed[];
}

/** Switches of the policy that change what tools say (docs/guide/policy.md#switches). */
export interface ToolSwitches {
  /** Rows carry `_source` telling where they came from. Default false. */
  readonly includeSourceProvenance: boolean;
  /** Reserved markers in schema text refuse the call instead of being neutralised. Default false. */
  readonly promptMarkerStrict: boolean;
  /** Schemas show the keys a declared method may write. Default false. */
  readonly agentDebug: boolean;
  /** CSV cells that a spreadsheet would run as a formula are prefixed with `'`. Default false: cells byte for byte. */
  readonly neutralizeFormulas: boolean;
}

/** One invocation. `records` is already governed for the agent; there is no other way to data from here. */
export interface ToolCall extends CallContext, AskingCall {
  /** What is called. */
  readonly tool: ToolDefinition;
  /** The data, as the calling agent may read it; there is no other way to it. */
  readonly records: GovernedRecords;
  /** Full-text and vector search, governed as `records` are. */
  readonly search: GovernedSearch;
  /** What the operator switched on, under the policy that the call was admitted under. */
  readonly switches: ToolSwitches;
  /** Puts what embeddings cost into the record of the call, adding up. */
  spend(embedding: EmbeddingSpend): void;
  /**
   * For a tool with `task: 'on-demand'`: from here on the call is a task, where its client follows tasks; the handler then
   * runs again from the top, with the answers it was given. What comes before must have no effects.
   */
  continueAsTask(): void;
}

/** What a tool that needs `rows` gets. */
export interface RowWritingCall extends ToolCall {
  /** Creates, changes and deletes rows, as the calling agent may. */
  readonly writes: GovernedWrites;
}

/** What a tool that needs `classes` gets. */
export interface ClassWritingCall extends ToolCall {
  readonly classes: GovernedClassWrites;
}

/** What call_method gets. */
export interface MethodCallingCall extends ToolCall {
  readonly methods: GovernedMethods;
}

/** A block of content as MCP tool results and prompts carry it (MCP 2025-11-25, server/tools#tool-result). */
export type ContentBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | {
      readonly type: 'resource_link';
      readonly uri: string;
      readonly name: string;
      readonly description?: string;
      readonly mimeType?: string;
    }
  | { readonly type: 'resource'; readonly resource: EmbeddedResource };

/** A resource inside an answer: text, or bytes in base64. */
export type EmbeddedResource = {
  readonly uri: string;
  readonly mimeType?: string;
  readonly _meta?: Readonly<Record<string, unknown>>;
} & ({ readonly text: string } | { readonly blob: string });

/**
 * Returned by a tool whose result is not plain data: its blocks are sent as they are. Size limit and canaries apply to
 * all of it. Anything else that a handler returns is data.
 */
export class ToolContent {
  /** @param data also sent as structured content where the tool declares an output schema */
  constructor(
    /** In the order they are shown. */
    readonly blocks: readonly ContentBlock[],
    /** The same for programs. Default none. */
    readonly data?: Readonly<Record<string, unknown>>,
  ) {}
}

/** A handler returns the result data (any JSON value), a `ToolContent`, or throws `Refused`. */
export type ToolHandler = (args: Readonly<Record<string, unknown>>, call: ToolCall) => unknown;

/** What came of a call. `text` is the pretty-printed JSON of `data`, already within the size limit. */
export type ToolOutcome =
  | {
      readonly ok: true;
      readonly data: unknown;
      readonly text: string;
      readonly structured: boolean;
      /** Sent in place of `text`. */
      readonly blocks?: readonly ContentBlock[];
    }
  | { readonly ok: false; readonly refusal: Refusal };

/** Runs tools through the one ordered pipeline. Listing and calling ask the same decision. */
export abstract class ToolRunner {
  /** The tools that this context's agent may call, in catalogue order. */
  abstract list(context: Pick<CallContext, 'agent'>): readonly ToolDefinition[];
  /** Whether any tool of that name exists, permitted or not. */
  abstract has(name: string): boolean;
  /** Whether it is listed for this context's agent, and of the tier that these arguments ask for. */
  permits(context: Pick<CallContext, 'agent'>, name: string, _args: unknown): boolean {
    return this.list(context).some((tool) => tool.name === name);
  }
  /** Never throws for what a caller did; a fault becomes `internal_error`. @throws Unauthorized */
  abstract run(name: string, args: unknown, context: CallContext): Promise<ToolOutcome>;
}

/** What a caller may use; the same decision that lists and runs tools. */
export abstract class PermittedTools {
  /** In catalogue order. */
  abstract list(context: Pick<CallContext, 'agent'>): readonly ToolDefinition[];
}

/** What the process environment opened, for tools that ask about more than their own name. */
export abstract class ToolEnvironment implements EnvironmentGates {
  abstract readonly PARSE_AGENT_ALLOW_WRITE_TOOLS: boolean;
  abstract readonly PARSE_AGENT_ALLOW_SCHEMA_OPS: boolean;
  abstract readonly PARSE_AGENT_ALLOW_RAW_CRUD: boolean;
  abstract readonly PARSE_AGENT_ALLOW_RAW_SCHEMA: boolean;
}
