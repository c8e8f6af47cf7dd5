import type { Era } from '#core';
import { isJsonObject, type JsonObject, member, ProtocolFault, RPC } from './json-rpc.js';

export const MODERN_VERSIONS = ['2026-07-28'] as const;
export const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;
export type LegacyVersion = (typeof LEGACY_VERSIONS)[number];

/**
 * The answer to an `initialize` with an unsupported version, and the default for a legacy request without one: its
 * additional members are ignored by older clients.
 */
export const FALLBACK_VERSION: LegacyVersion = '2025-06-18';

const OLDEST_MODERN = MODERN_VERSIONS[0];
const DATE = /^\d{4}-\d{2}-\d{2}$/;

export function isLegacyVersion(value: unknown): value is LegacyVersion {
  return LEGACY_VERSIONS.includes(value as LegacyVersion);
}

export function isServedModernVersion(value: unknown): boolean {
  return MODERN_VERSIONS.includes(value as (typeof MODERN_VERSIONS)[number]);
}

/** A date of the stateless era, served or not. */
export function namesModernEra(value: string | undefined): boolean {
  return value !== undefined && value >= OLDEST_MODERN && DATE.test(value);
}

/** The features of a revision. Compared by identity: one object per version. */
export interface Dialect {
  readonly version: string;
  readonly era: Era;
  /** Tool annotations. */
  readonly annotations: boolean;
  /** `title`, `outputSchema`, `structuredContent`. */
  readonly structured: boolean;
  /** `structuredContent` need not be an object. */
  readonly anyStructuredRoot: boolean;
  /** Completions, instructions and cursors: the revisions up to 2025-06-18 are frozen without them. */
  readonly additions: boolean;
}

function describe(version: string): Dialect {
  const modern = version >= OLDEST_MODERN;
  return Object.freeze({
    version,
    era: modern ? 'modern' : 'legacy',
    annotations: version >= '2025-03-26',
    structured: version >= '2025-06-18',
    anyStructuredRoot: modern,
    additions: version >= '2025-11-25',
  });
}

const DIALECTS = new Map<string, Dialect>(
  [...LEGACY_VERSIONS, ...MODERN_VERSIONS].map((version) => [version, describe(version)]),
);
const FALLBACK_DIALECT = describe(FALLBACK_VERSION);

/**
 * The dialect of a version. When version and era disagree or the version is unknown, it is that of the era's own
 * version.
 */
export function dialectOf(era: Era, version: string): Dialect {
  const named = DIALECTS.get(version);
  if (named?.era === era) return named;
  return (
    (era === 'modern' ? DIALECTS.get(OLDEST_MODERN) : DIALECTS.get(FALLBACK_VERSION)) ?? FALLBACK_DIALECT
  );
}

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
