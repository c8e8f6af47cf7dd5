import { isJsonObject, type JsonObject, member } from './json-object.js';
import { ProtocolFault, RPC } from './protocol-fault.js';
import type { Dialect } from './protocol-versions.js';

const DECLARED: JsonObject = Object.freeze({});

/** The declared members, each as an empty object: their content is never read. */
function declared(value: unknown, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.filter((name) => isJsonObject(member(value, name))).map((name) => [name, DECLARED]),
  );
}

/**
 * An empty object means forms, so the result must not be empty when the client declares other modes; `form: false`
 * counts as another mode.
 */
function elicitation(value: unknown): unknown {
  if (!isJsonObject(value)) return true;
  const modes = declared(value, ['form', 'url']);
  return Object.keys(modes).length > 0 || Object.keys(value).length === 0 ? modes : { form: false };
}

/**
 * The client capabilities that the server uses, without the rest: a few dozen bytes, whatever the client sent. They are
 * stored with sessions and tasks.
 */
export function knownCapabilities(given: unknown): JsonObject {
  if (!isJsonObject(given)) return {};
  const extensions = declared(given.extensions, [TASKS_EXTENSION, VIEWS_EXTENSION]);
  return {
    ...declared(given, ['roots']),
    ...(isJsonObject(given.sampling) && { sampling: declared(given.sampling, ['tools']) }),
    ...(Boolean(given.elicitation) && { elicitation: elicitation(given.elicitation) }),
    ...(Object.keys(extensions).length > 0 && { extensions }),
  };
}

/** Name of the extension in capabilities (MCP Apps 2026-01-26). */
export const VIEWS_EXTENSION = 'io.modelcontextprotocol/ui';

/**
 * Whether the client declares that it shows the views of tools. Revisions up to 2025-06-18 are frozen without
 * extensions.
 */
export function showsViews(capabilities: JsonObject, { additions }: Dialect): boolean {
  return additions && isJsonObject(member(member(capabilities, 'extensions'), VIEWS_EXTENSION));
}

/** Name of the extension in capabilities (MCP 2026-07-28, extensions/tasks). */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** Whether the client of this request declares support for tasks. */
export function declaresTasks(capabilities: JsonObject, { era }: Dialect): boolean {
  return era === 'modern' && isJsonObject(member(member(capabilities, 'extensions'), TASKS_EXTENSION));
}

export function tasksNotDeclared(): ProtocolFault {
  const data = { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } };
  return new ProtocolFault(RPC.missingCapability, 'Missing required client capability', data, 400);
}
