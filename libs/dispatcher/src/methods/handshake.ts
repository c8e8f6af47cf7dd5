import type { JsonObject } from '../json-object.js';
import { dialectOf, FALLBACK_VERSION, isLegacyVersion, MODERN_VERSIONS } from '../protocol-versions.js';
import type { ServerInfo } from '../result-envelope.js';

/** The capability object of the frozen revisions, member for member. */
const FROZEN_CAPABILITIES = Object.freeze({
  tools: Object.freeze({ listChanged: true }),
  resources: Object.freeze({ subscribe: false, listChanged: false }),
  prompts: Object.freeze({ listChanged: true }),
});

/** Later revisions are told only what is served. */
const CAPABILITIES = Object.freeze({
  tools: Object.freeze({ listChanged: true }),
  resources: Object.freeze({}),
  prompts: Object.freeze({ listChanged: true }),
  completions: Object.freeze({}),
  logging: Object.freeze({}),
});

/** Answers `initialize`: an unknown or missing version gets ours. */
export function initialize(params: JsonObject, serverInfo: ServerInfo, instructions?: string): JsonObject {
  const asked = params.protocolVersion;
  const protocolVersion = isLegacyVersion(asked) ? asked : FALLBACK_VERSION;
  const { additions } = dialectOf('legacy', protocolVersion);
  return {
    protocolVersion,
    capabilities: additions ? CAPABILITIES : FROZEN_CAPABILITIES,
    serverInfo,
    ...(additions && instructions !== undefined && { instructions }),
  };
}

/** Legacy revisions are not listed: they are reached through `initialize`. */
export function discover(instructions?: string): JsonObject {
  return {
    supportedVersions: MODERN_VERSIONS,
    capabilities: CAPABILITIES,
    ...(instructions !== undefined && { instructions }),
  };
}
