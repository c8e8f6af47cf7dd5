import { isLogLevel } from '#core';
import type { MethodRequest } from './method.js';
import type { ListChanges, ResourceSubscriptions } from './subscription-methods.js';
import {
  dialectOf,
  FALLBACK_VERSION,
  isLegacyVersion,
  MODERN_VERSIONS,
  TASKS_EXTENSION,
  VIEWS_EXTENSION,
  type JsonObject,
  type ServerInfo,
  invalidParams,
} from '../protocol.js';
import type { ResourceRegistry } from '../resources/resource-registry.js';
import type { TaskStore } from '../tasks/task-store.js';

export interface HandshakeDependencies {
  readonly serverInfo: ServerInfo;
  readonly instructions?: string;
  readonly subscriptions?: ResourceSubscriptions;
  readonly listChanges?: ListChanges;
  readonly tasks?: TaskStore;
  readonly resources?: ResourceRegistry;
}

const VIEW_ADDRESS = 'ui:';

/** The extensions that are served. */
function extensions(known: Readonly<Record<string, boolean>>): JsonObject {
  const served = Object.keys(known).filter((name) => known[name]);
  return served.length === 0 ? {} : { extensions: Object.fromEntries(served.map((name) => [name, {}])) };
}

/** The start of a protocol session: the server and the features that are served now. */
export class Handshake {
  constructor(private readonly dependencies: HandshakeDependencies) {}

  /** Answers `initialize`: an unknown or missing version gets the default version. */
  initialize(params: JsonObject): JsonObject {
    const { serverInfo } = this.dependencies;
    const requested = params.protocolVersion;
    const protocolVersion = isLegacyVersion(requested) ? requested : FALLBACK_VERSION;
    const { additions } = dialectOf('legacy', protocolVersion);
    return {
      protocolVersion,
      capabilities: additions
        ? { ...this.capabilities(), ...extensions({ [VIEWS_EXTENSION]: this.hasViews }) }
        : this.frozenCapabilities(),
      serverInfo,
      ...(additions && this.instructions()),
    };
  }

  /** Legacy revisions are not listed: clients open them with `initialize`. */
  discover(): JsonObject {
    return {
      supportedVersions: MODERN_VERSIONS,
      capabilities: {
        ...this.capabilities(),
        ...extensions({
          [VIEWS_EXTENSION]: this.hasViews,
          [TASKS_EXTENSION]: this.dependencies.tasks !== undefined,
        }),
      },
      ...this.instructions(),
    };
  }

  private get hasViews(): boolean {
    return this.dependencies.resources?.providerOf(VIEW_ADDRESS) !== undefined;
  }

  private instructions(): JsonObject {
    const { instructions } = this.dependencies;
    return instructions === undefined ? {} : { instructions };
  }

  /** The capability object of the frozen revisions, member for member. */
  private frozenCapabilities(): JsonObject {
    return {
      tools: { listChanged: true },
      resources: { subscribe: this.dependencies.subscriptions?.supported ?? false, listChanged: false },
      prompts: { listChanged: true },
    };
  }

  /** Later revisions receive only the features that are served. */
  private capabilities(): JsonObject {
    const { subscriptions, listChanges } = this.dependencies;
    return {
      tools: { listChanged: true },
      resources: {
        ...(subscriptions?.supported === true && { subscribe: true }),
        ...(listChanges?.kinds.has('resources') === true && { listChanged: true }),
      },
      prompts: { listChanged: true },
      completions: {},
      logging: {},
    };
  }
}

/** `logging/setLevel`: without a session there is no level to store, and the call succeeds. */
export async function setLogLevel({ params, context }: MethodRequest): Promise<JsonObject> {
  const { level } = params;
  if (!isLogLevel(level)) throw invalidParams('Invalid log level');
  await context.setLogLevel?.(level);
  return {};
}
