import { isJsonObject, type JsonObject, member } from '../json-object.js';
import { ProtocolFault, RPC } from '../protocol-fault.js';
import type { Dialect } from '../protocol-versions.js';

/** Name of the extension in capabilities (MCP 2026-07-28, extensions/tasks). */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** Whether this request declares that its client follows tasks. */
export function declaresTasks(capabilities: JsonObject, { era }: Dialect): boolean {
  return era === 'modern' && isJsonObject(member(member(capabilities, 'extensions'), TASKS_EXTENSION));
}

export function tasksNotDeclared(): ProtocolFault {
  const data = { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } };
  return new ProtocolFault(RPC.missingCapability, 'Missing required client capability', data, 400);
}
