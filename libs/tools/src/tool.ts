import type { AskingCall, CodeCaller, McpRequest, Refusal, Tier } from '#core';
import type { EmbeddingSpend } from '#audit';
import type {
  ClassUse,
  GovernedClassWrites,
  GovernedMethods,
  GovernedRecords,
  GovernedSearch,
  GovernedWrites,
} from '#data';
import type { EnvironmentGates } from '#policy';
import type { JsonSchema } from '#schema';

export type { JsonSchema };

/** MCP tool annotations: hints to a host, never rules (MCP 2025-06-18, server/tools). */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** Reads the operator's own database: changes nothing, has no external effect, is repeatable. */
export const READ_ONLY: ToolAnnotations = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };

/** The same, but the search text may be sent to the operator's embeddings endpoint. */
export const READS_AND_EMBEDS: ToolAnnotations = { ...READ_ONLY, openWorldHint: true };

/** What a tool of a tier does, as far as its tier says: a client takes a tool without hints for one that destroys. */
export function annotationsByTier(permission: Tier, given: ToolAnnotations = {}): ToolAnnotations {
  const { readOnlyHint = permission === 'readonly' } = given;
  return { readOnlyHint, ...(!readOnlyHint && { destructiveHint: true }), ...given };
}

/** Shows rows and groups as a table and a chart (docs/guide/views.md). */
export const RESULTS_VIEW = 'ui://parley/results';

/** The access of a tool beyond reading. A tool receives only the access that it names. */
export const TOOL_NEEDS = ['rows', 'classes', 'methods'] as const;
export type ToolNeed = (typeof TOOL_NEEDS)[number];

export const TASK_SUPPORT = ['optional', 'required', 'on-demand'] as const;
export type TaskSupport = (typeof TASK_SUPPORT)[number];

/** `method`: runs a declared method. `meaning`: compares vectors with an embedded text. */
export type ToolUse = ClassUse | 'method' | 'meaning';

/** The definition of a tool; its handler is on the provider that declares it. */
export interface ToolDefinition {
  /** Unique in the service. */
  readonly name: string;
  /** For people. Default: the name. */
  readonly title?: string;
  /** For the model that selects the tool. */
  readonly description: string;
  /** Groups tools in listings. */
  readonly category: string;
  /** Lowest tier that may call it. */
  readonly permission: Tier;
  /** Seconds, at least 1. Default 30. */
  readonly timeout: number;
  /** JSON Schema of its arguments, of type object. */
  readonly inputSchema: JsonSchema;
  /**
   * Task support, for clients with tasks (docs/guide/tasks.md). `optional`: runs as a task, and a fast call is answered
   * at once. `required`: only as a task; other clients are refused. `on-demand`: the handler calls `continueAsTask`.
   * Default: never.
   */
  readonly task?: TaskSupport;
  /** Seconds that a run as a task may take. Default 600. */
  readonly taskTimeout?: number;
  /** When declared, results are also sent as `structuredContent`. */
  readonly outputSchema?: JsonSchema;
  /** Hints for clients, without effect on gates. */
  readonly annotations?: ToolAnnotations;
  /**
   * Address (`ui:`) of a page that shows the result, for hosts that show pages (docs/guide/views.md). The text contains
   * everything too.
   */
  readonly view?: string;
  /** Callable by agents that act as a client without a master key. Default false. */
  readonly clientSafe: boolean;
  /**
   * What the tool does with the class in its `class_name`. Without a class that permits it, an agent does not get the
   * tool listed.
   * @internal
   */
  readonly use?: ToolUse;
  /**
   * `always`: a person approves every call, whatever the policy lists, and sees what it does as `Changes` shows it. `never`: the call
   * changes no row.
   * @internal
   */
  readonly approval?: 'always' | 'never';
  /**
   * `rows`: changes objects. `classes`: creates and removes classes. `methods`: runs declared methods. Default none.
   */
  readonly needs?: readonly ToolNeed[];
}

/** Whether a call of the tool may change data, whatever it calls itself. */
export const mayChangeData = ({ permission, needs = [] }: ToolDefinition): boolean =>
  permission !== 'readonly' || needs.length > 0;

/** Switches of the policy that change the text of tools (docs/reference/policy-options.md#switches). */
export interface ToolSwitches {
  /** Rows have a `_source` with their origin. Default false. */
  readonly includeSourceProvenance: boolean;
  /** Reserved markers in schema text refuse the call instead of being neutralised. Default false. */
  readonly promptMarkerStrict: boolean;
  /** Schemas show the keys a declared method may write. Default false. */
  readonly agentDebug: boolean;
  /** Prefixes CSV cells that a spreadsheet would run as a formula with `'`. Default false: cells byte for byte. */
  readonly neutralizeFormulas: boolean;
  /** The text of a result is indented JSON. Default false: compact JSON. */
  readonly prettyText: boolean;
}

/** One call of a tool. `records` is governed for the agent and is the only access to data. */
export interface ToolCall extends McpRequest, AskingCall {
  /** The tool that is called. */
  readonly tool: ToolDefinition;
  /** The data, as the calling agent may read it; the only access to it. */
  readonly records: GovernedRecords;
  /** Full-text and vector search, governed like `records`. */
  readonly search: GovernedSearch;
  /** The operator's switches, under the policy that admitted the call. */
  readonly switches: ToolSwitches;
  /** Names the change set that the call is about, for its record. */
  belongsTo(changeSet: string): void;
  /** Adds the cost of embeddings to the record of the call. */
  spend(embedding: EmbeddingSpend): void;
  /**
   * For a tool with `task: 'on-demand'`: makes the call a task where its client supports tasks. The handler then runs
   * again from the start, with the earlier answers of the client. Code before it must have no effects.
   */
  continueAsTask(): void;
}

/** The call of a tool that needs `rows`. */
export interface RowWritingCall extends ToolCall {
  /** Creates, changes and deletes rows, with the calling agent's rights. */
  readonly writes: GovernedWrites;
}

/** The call of a tool that needs `classes`. */
export interface ClassWritingCall extends ToolCall {
  readonly classes: GovernedClassWrites;
}

export interface MethodCallingCall extends ToolCall {
  readonly methods: GovernedMethods;
}

/** A content block of MCP tool results and prompts (MCP 2025-11-25, server/tools#tool-result). */
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

/** An embedded resource: text, or bytes in base64. */
export type EmbeddedResource = {
  readonly uri: string;
  readonly mimeType?: string;
  readonly _meta?: Readonly<Record<string, unknown>>;
} & ({ readonly text: string } | { readonly blob: string });

/**
 * Returned by a tool whose result is not plain data: its blocks are sent unchanged. Size limit and canaries apply to
 * all of it. Any other return value of a handler is data.
 */
export class ToolContent {
  /** @param data also sent as structured content where the tool declares an output schema */
  constructor(
    /** In display order. */
    readonly blocks: readonly ContentBlock[],
    /** The same as data, for programs. Default none. */
    readonly data?: Readonly<Record<string, unknown>>,
  ) {}
}

/** A handler returns the result data (any JSON value), a `ToolContent`, or throws `Refused`. */
export type ToolHandler = (args: Readonly<Record<string, unknown>>, call: ToolCall) => unknown;

/** The outcome of a call. `text` is the JSON of `data`, already within the size limit. */
export type ToolOutcome =
  | {
      readonly ok: true;
      readonly data: unknown;
      readonly text: string;
      readonly structured: boolean;
      /** Sent instead of `text`. */
      readonly blocks?: readonly ContentBlock[];
    }
  | {
      readonly ok: false;
      readonly refusal: Refusal;
      /** The JSON of a refusal with a body: sent instead of its message. */
      readonly text?: string;
    };

/** Runs tools through the one ordered pipeline. Listing and calling use the same decision. */
export abstract class ToolRunner {
  /** The tools that this context's agent may call, in catalogue order. */
  abstract list(caller: CodeCaller): readonly ToolDefinition[];
  /**
   * Those that `tools/list` returns: without tools that cannot work for this agent on this database. Default: all that it
   * may call.
   */
  listTools(caller: CodeCaller): readonly ToolDefinition[] | Promise<readonly ToolDefinition[]> {
    return this.list(caller);
  }
  /** The tool of that name, permitted or not; undefined: there is none. */
  abstract find(name: string): ToolDefinition | undefined;
  /** Whether the tool is listed for this context's agent and the agent has the tier that these arguments require. */
  permits(caller: CodeCaller, name: string, _args: unknown): boolean {
    return this.list(caller).some((tool) => tool.name === name);
  }
  /**
   * Calls a tool as an agent, or within the call that runs. Never throws for errors of the caller; an internal error becomes
   * `internal_error`. @throws Unauthorized. @throws TypeError for what names no agent
   */
  abstract run(name: string, args: unknown, caller: CodeCaller): Promise<ToolOutcome>;
}

/** The tools that a caller may use; the same decision lists and runs tools. */
export abstract class PermittedTools {
  /** In catalogue order. */
  abstract list(context: Pick<McpRequest, 'agent'>): readonly ToolDefinition[];
  /** Those of them that can work for this agent, as `tools/list` returns them. */
  abstract listTools(
    context: Pick<McpRequest, 'agent'>,
  ): readonly ToolDefinition[] | Promise<readonly ToolDefinition[]>;
}

/** The gates that the process environment opened, for tools that check more than their own name. */
export abstract class ToolEnvironment implements EnvironmentGates {
  abstract readonly PARSE_AGENT_ALLOW_WRITE_TOOLS: boolean;
  abstract readonly PARSE_AGENT_ALLOW_SCHEMA_OPS: boolean;
  abstract readonly PARSE_AGENT_ALLOW_RAW_CRUD: boolean;
  abstract readonly PARSE_AGENT_ALLOW_RAW_SCHEMA: boolean;
}
