import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { SessionStreams, SharedState } from '#state';
import { ListChanges } from '#dispatcher';
import { EdgeDependencies, EdgeSettings, type McpEdgeOptions } from './http/edge-dependencies.js';
import { McpEdge } from './http/mcp-edge.js';
import { PendingClientRequests } from './sessions/client-requests.js';
import { ListeningStreams, ReplicatedListChanges } from './sessions/listening-streams.js';
import { ReplicaSignals } from './sessions/replica-signals.js';
import { Wire } from './sessions/wire.js';
import { Resumption } from './sse/resumable-stream.js';

/** Where this instance is served over HTTP. An application that embeds Parley sets it when its own paths are known. */
export class ServedAt {
  private places: { readonly endpoints: readonly string[]; readonly downloads: string | null };

  /** @param path of MCP, where no prefix precedes it */
  constructor(path: string) {
    this.places = { endpoints: [path], downloads: '/exports' };
  }

  /** @param places the path of MCP and the path of files; null: no file is served */
  settle(places: { readonly endpoints: readonly string[]; readonly downloads: string | null }): void {
    this.places = places;
  }

  get endpoints(): readonly string[] {
    return this.places.endpoints;
  }

  get downloads(): string | null {
    return this.places.downloads;
  }
}

/** The signals between clients and calls besides request and answer: cancellation, list changes, streams of sessions. */
@Module({})
export class WireModule {
  /** @param path of MCP. @param imports provide the shared state */
  static register(path: string, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: WireModule,
      imports: [...(imports ?? [])],
      providers: [
        { provide: ServedAt, useValue: new ServedAt(path) },
        ReplicaSignals,
        ListeningStreams,
        PendingClientRequests,
        ReplicatedListChanges,
        Resumption,
        Wire,
        { provide: SessionStreams, useExisting: ListeningStreams },
        { provide: ListChanges, useExisting: ReplicatedListChanges },
      ],
      exports: [ServedAt, Wire, SessionStreams, ListChanges],
    };
  }
}

/** Limits in requests of a window in seconds; null: none. */
interface RequestLimits {
  readonly requestRateLimit: { readonly limit: number; readonly window: number } | null;
  readonly preAuthRateLimit: { readonly limit: number; readonly window: number } | null;
}

export type StreamingModuleOptions = RequestLimits &
  Omit<McpEdgeOptions, 'requestLimiter' | 'preAuthRateLimiter'>;

/** The settings of the edge, with the limiters that the shared state provides. */
function settingsOf(
  { requestRateLimit, preAuthRateLimit, ...options }: StreamingModuleOptions,
  { limiters }: SharedState,
): EdgeSettings {
  return new EdgeSettings({
    ...options,
    requestLimiter: requestRateLimit ? limiters.limiter('requests', requestRateLimit) : null,
    preAuthRateLimiter: preAuthRateLimit ? limiters.limiter('pre-auth', preAuthRateLimit) : null,
  });
}

/**
 * Serves MCP over HTTP, on plain Node requests: a Nest HTTP adapter passes requests of its path to it before Express does.
 */
@Module({})
export class StreamingModule {
  /** @param imports provide the kernel, the authenticator, the wire, downloads, telemetry and the shared state */
  static register(options: StreamingModuleOptions, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: StreamingModule,
      imports: [...(imports ?? [])],
      providers: [
        {
          provide: EdgeSettings,
          useFactory: (state: SharedState) => settingsOf(options, state),
          inject: [SharedState],
        },
        EdgeDependencies,
        McpEdge,
      ],
      exports: [McpEdge],
    };
  }
}
