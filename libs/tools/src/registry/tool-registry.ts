import type { Observable } from 'rxjs';
import type { ToolRegistration } from '../declaration/tool.decorator.js';
import type { ToolDefinition, ToolHandler } from '../tool.js';

export interface RegisteredTool {
  readonly definition: ToolDefinition;
  readonly handler: ToolHandler;
  /** True for Parley's own tools, false for an override of one. */
  readonly builtIn: boolean;
  /**
   * Of a built-in: refuses arguments that it does not declare. An application's tool has its own schema for that.
   * @throws Refused `invalid_argument`
   */
  readonly refuseUnknown?: (args: unknown) => void;
}

/** Which tools exist. Who may call them is decided elsewhere, once, for listing and calling alike. */
export abstract class ToolRegistry {
  /** Differs after every change: a key for caches over the catalogue. */
  abstract get version(): number;
  /** Emits after every change. A subscriber that throws is logged; the others still hear of the change. */
  abstract readonly changes: Observable<void>;

  /**
   * Puts Parley's own tools in place.
   * @throws ToolDeclarationError when called again or given a tool that is not one
   * @internal
   */
  abstract installBuiltIns(tools: readonly ToolRegistration[]): void;

  /**
   * Adds the tools that an application declares at its start.
   * @throws ToolDeclarationError as `register`, and when two declarations have one name
   * @internal
   */
  abstract registerDeclared(tools: Iterable<ToolRegistration>): void;

  /**
   * Adds an application's tool, or replaces the one that it registered under this name.
   * @returns removes the tool again, unless it was replaced since; an overridden built-in then returns
   * @throws ToolDeclarationError for a built-in's name without `override`, and for a definition that cannot work
   */
  abstract register(tool: ToolRegistration): () => void;

  /** By name. */
  abstract get(name: string): RegisteredTool | undefined;

  /** Catalogue order: built-in places first, then the others by name, so that replicas agree. */
  abstract all(): readonly RegisteredTool[];
}
