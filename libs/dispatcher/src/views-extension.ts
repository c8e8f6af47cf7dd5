import { isJsonObject, type JsonObject, member } from './json-object.js';
import type { Dialect } from './protocol-versions.js';

/** Name of the extension in capabilities (MCP Apps 2026-01-26). */
export const VIEWS_EXTENSION = 'io.modelcontextprotocol/ui';

/** Whether the client says that it shows the views of tools. Revisions up to 2025-06-18 are frozen without extensions. */
export function showsViews(capabilities: JsonObject, { additions }: Dialect): boolean {
  return additions && isJsonObject(member(member(capabilities, 'extensions'), VIEWS_EXTENSION));
}
