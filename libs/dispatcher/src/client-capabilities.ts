import { isJsonObject, type JsonObject, member } from './json-object.js';
import { TASKS_EXTENSION } from './tasks/tasks-extension.js';
import { VIEWS_EXTENSION } from './views-extension.js';

const DECLARED: JsonObject = Object.freeze({});

/** The named members that are declared, each empty: what is inside of them is asked by nobody. */
function declared(value: unknown, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.filter((name) => isJsonObject(member(value, name))).map((name) => [name, DECLARED]),
  );
}

/** An empty object means forms, and so must not become of one that names other modes: `form: false` is such another. */
function elicitation(value: unknown): unknown {
  if (!isJsonObject(value)) return true;
  const modes = declared(value, ['form', 'url']);
  return Object.keys(modes).length > 0 || Object.keys(value).length === 0 ? modes : { form: false };
}

/**
 * What we ever ask of a client's capabilities, and nothing else of what it declared: a few dozen bytes, however much was sent.
 * It is kept with sessions and tasks.
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
