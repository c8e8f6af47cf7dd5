import type { Era } from '#core';

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

/** Names that the stateless revisions reserve inside `_meta`. */
export const PROTOCOL_VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
export const CLIENT_CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
export const LOG_LEVEL_KEY = 'io.modelcontextprotocol/logLevel';
export const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo';
export const SUBSCRIPTION_ID_KEY = 'io.modelcontextprotocol/subscriptionId';
