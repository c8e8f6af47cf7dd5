import type { CallContext } from '#agent';
import type { ToolDefinition } from './tool.js';

/** What a caller may use; the same decision that lists and runs tools. */
export abstract class PermittedTools {
  /** In catalogue order. */
  abstract list(context: Pick<CallContext, 'agent'>): readonly ToolDefinition[];
}
