import { Inject, Injectable } from '@nestjs/common';
import { isLogLevel, type McpRequest, type JsonObject } from '#core';
import { KERNEL_OPTIONS, type KernelOptions, McpMethod, OF_SERVER } from './method.js';
import { ListChanges, ResourceSubscriptions } from './subscription-methods.js';
import {
  findDialect,
  FALLBACK_VERSION,
  isLegacyVersion,
  MODERN_VERSIONS,
  TASKS_EXTENSION,
  VIEWS_EXTENSION,
  invalidParams,
  ResultEnvelope,
} from '../protocol.js';
import { ResourceRegistry } from '../resources/resource-registry.js';
import { TaskStore } from '../tasks/task-store.js';

const VIEW_ADDRESS = 'ui:';

/** The extensions that are served. */
function extensions(known: Readonly<Record<string, boolean>>): JsonObject {
  const served = Object.keys(known).filter((name) => known[name]);
  return served.length === 0 ? {} : { extensions: Object.fromEntries(served.map((name) => [name, {}])) };
}

/** The start of a protocol session: the server and the features that are served now. */
@Injectable()
export class Handshake {
  /** A parameter that is null: the feature is not served. */
  constructor(
    @Inject(KERNEL_OPTIONS) private readonly options: Pick<KernelOptions, 'instructions' | 'announces'>,
    private readonly envelope: ResultEnvelope,
    private readonly registry: ResourceRegistry,
    @Inject(ResourceSubscriptions) private readonly subscriptions: ResourceSubscriptions | null,
    @Inject(ListChanges) private readonly listChanges: ListChanges | null,
    @Inject(TaskStore) private readonly tasks: TaskStore | null,
  ) {}

  /** An unknown or missing version gets the default version. */
  @McpMethod('initialize', { modern: false })
  initialize({ protocolVersion: requested }: JsonObject): JsonObject {
    const protocolVersion = isLegacyVersion(requested) ? requested : FALLBACK_VERSION;
    const { additions } = findDialect('legacy', protocolVersion);
    return {
      protocolVersion,
      capabilities: additions
        ? { ...this.capabilities(), ...extensions({ [VIEWS_EXTENSION]: this.hasViews }) }
        : this.freezeCapabilities(),
      serverInfo: this.envelope.serverInfo,
      ...(additions && this.instructions()),
    };
  }

  @McpMethod('ping', { modern: false })
  ping(): JsonObject {
    return {};
  }

  /** Legacy revisions are not listed: clients open them with `initialize`. */
  @McpMethod('server/discover', { legacySince: null, cache: OF_SERVER })
  discover(): JsonObject {
    return {
      supportedVersions: MODERN_VERSIONS,
      capabilities: {
        ...this.capabilities(),
        ...extensions({
          [VIEWS_EXTENSION]: this.hasViews,
          [TASKS_EXTENSION]: this.tasks !== null,
        }),
      },
      ...this.instructions(),
    };
  }

  private get hasViews(): boolean {
    return this.registry.findProvider(VIEW_ADDRESS) !== undefined;
  }

  private instructions(): JsonObject {
    const { instructions } = this.options;
    return instructions === undefined ? {} : { instructions };
  }

  /** The capability object of the frozen revisions, member for member. */
  private freezeCapabilities(): JsonObject {
    const { announces = true } = this.options;
    return {
      tools: { listChanged: announces },
      resources: { subscribe: this.subscriptions?.supported ?? false, listChanged: false },
      prompts: { listChanged: announces },
    };
  }

  /** Later revisions receive only the features that are served. */
  private capabilities(): JsonObject {
    const { subscriptions, listChanges } = this;
    const { announces = true } = this.options;
    return {
      tools: { listChanged: announces },
      resources: {
        ...(subscriptions?.supported === true && { subscribe: true }),
        ...(announces && listChanges?.kinds.has('resources') === true && { listChanged: true }),
      },
      prompts: { listChanged: announces },
      completions: {},
      logging: {},
    };
  }

  /** Without a session there is no level to store, and the call succeeds. */
  @McpMethod('logging/setLevel', { legacySince: '2025-11-25', modern: false })
  async setLevel({ level }: JsonObject, request: McpRequest): Promise<JsonObject> {
    if (!isLogLevel(level)) throw invalidParams('Invalid log level');
    await request.transport.setLogLevel?.(level);
    return {};
  }
}
