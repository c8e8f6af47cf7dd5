import type { Observable } from 'rxjs';
import type { ToolRegistration } from '../declaration/tool.decorator.js';
import type { ToolDefinition, ToolHandler } from '../tool.js';

export interface RegisteredTool {
  readonly definition: ToolDefinition;
  readonly handler: ToolHandler;
  /** True for Parley's own tools, false for an override of one. */
  readonly builtIn: boolean;
}

/** Which tools exist. Who may call them is decided elsewhere, once, for listing and calling alike. */
export abstract class ToolRegistry {
  /** Differs after every change: a key for caches over the catalogue. */
  abstract get version(): number;
  /** Emits after every change. */
  abstract readonly changes: Observable<void>;

  /**
   * Puts Parley's own tools in place.
   * @throws ToolDeclarationError when called again or given a tool that is not one
   * @internal
   */
  abstract installBuiltIns(tools: readonly ToolRegistration[]): void;

  /**
   * Adds an application's tool.
   * @returns takes the tool away again; an overridden built-in then returns
   * @throws ToolDeclarationError for a name in use, or a built-in's name without `override`
   */
  abstract register(tool: ToolRegistration): () => void;

  /** By name. */
  abstract get(name: string): RegisteredTool | undefined;

  /** Catalogue order: built-in places first, then the others by name, so that replicas agree. */
  abstract all(): readonly RegisteredTool[];
}
