import { type JsonObject, member } from '../json-object.js';
import { dialectOf, FALLBACK_VERSION, isLegacyVersion, MODERN_VERSIONS } from '../protocol-versions.js';
import type { ListChanges, ListKind } from '../list-changes.js';
import type { ResourceSubscriptions } from '../resource-subscriptions.js';
import type { ServerInfo } from '../result-envelope.js';

export interface HandshakeParts {
  readonly serverInfo: ServerInfo;
  readonly instructions?: string;
  readonly subscriptions?: ResourceSubscriptions;
  readonly listChanges?: ListChanges;
}

/** How a conversation opens: what we are and what is served at this moment. */
export class Handshake {
  constructor(private readonly parts: HandshakeParts) {}

  /** Answers `initialize`, whatever its params are: an unknown or missing version gets ours. */
  initialize(params: unknown): JsonObject {
    const { serverInfo } = this.parts;
    const asked = member(params, 'protocolVersion');
    const protocolVersion = isLegacyVersion(asked) ? asked : FALLBACK_VERSION;
    const { additions } = dialectOf('legacy', protocolVersion);
    return {
      protocolVersion,
      capabilities: additions ? this.capabilities() : this.frozenCapabilities(),
      serverInfo,
      ...(additions && this.instructions()),
    };
  }

  /** Legacy revisions are not listed: they are reached through `initialize`. */
  discover(): JsonObject {
    return {
      supportedVersions: MODERN_VERSIONS,
      capabilities: this.capabilities(),
      ...this.instructions(),
    };
  }

  private instructions(): JsonObject {
    const { instructions } = this.parts;
    return instructions === undefined ? {} : { instructions };
  }

  /** The capability object of the frozen revisions, member for member. */
  private frozenCapabilities(): JsonObject {
    return {
      tools: { listChanged: true },
      resources: { subscribe: this.parts.subscriptions?.supported ?? false, listChanged: false },
      prompts: { listChanged: true },
    };
  }

  /** Later revisions are told only what is served. */
  private capabilities(): JsonObject {
    const subscribe = this.parts.subscriptions?.supported === true && { subscribe: true };
    return {
      tools: this.listChanged('tools'),
      resources: { ...subscribe, ...this.listChanged('resources') },
      prompts: this.listChanged('prompts'),
      completions: {},
    };
  }

  private listChanged(kind: ListKind): JsonObject {
    return this.parts.listChanges?.kinds.has(kind) === true ? { listChanged: true } : {};
  }
}
