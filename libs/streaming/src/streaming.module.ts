import { type DynamicModule, Logger, Module, type ModuleMetadata } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { Authenticator } from '#auth';
import { SessionStore, SessionStreams, SharedState } from '#state';
import { Kernel, ListChanges } from '#dispatcher';
import { Telemetry } from '#telemetry';
import { Downloads } from './http/edge-dependencies.js';
import type { McpEdgeOptions } from './http/edge-options.js';
import { McpEdge } from './http/mcp-edge.js';
import { ServedAt } from './served-at.js';
import { Wire } from './sessions/wire.js';

/** The signals between clients and calls besides request and answer: cancellation, list changes, streams of sessions. */
@Module({})
export class WireModule {
  /** @param path of MCP. @param imports provide the shared state */
  static register(path: string, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: WireModule,
      imports: [...(imports ?? [])],
      providers: [
        { provide: ServedAt, useFactory: () => new ServedAt(path) },
        {
          provide: Wire,
          useFactory: (state: SharedState) => new Wire({ state, log: new Logger('Wire') }),
          inject: [SharedState],
        },
        { provide: SessionStreams, useFactory: ({ listening }: Wire) => listening, inject: [Wire] },
        { provide: ListChanges, useFactory: ({ listChanges }: Wire) => listChanges, inject: [Wire] },
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

/**
 * Serves MCP over HTTP, on plain Node requests: a Nest HTTP adapter passes requests of its path to it before Express does.
 */
@Module({})
export class StreamingModule {
  /** @param imports provide the kernel, the authenticator, the wire, downloads, telemetry and the shared state */
  static register(
    { requestRateLimit, preAuthRateLimit, ...options }: StreamingModuleOptions,
    imports: ModuleMetadata['imports'],
  ): DynamicModule {
    return {
      module: StreamingModule,
      imports: [...(imports ?? [])],
      providers: [
        {
          provide: McpEdge,
          useFactory: (
            kernel: Kernel,
            authenticator: Authenticator,
            sessions: SessionStore,
            wire: Wire,
            downloads: Downloads,
            events: EventEmitter2,
            telemetry: Telemetry | null,
            { limiters }: SharedState,
          ) =>
            new McpEdge(
              {
                kernel,
                authenticator,
                sessions,
                wire,
                downloads,
                telemetry: telemetry ?? undefined,
                onAbandoned: (dispatch) => events.emit('parse.agent.mcp_dispatcher_abandoned', dispatch),
                log: new Logger('McpEdge'),
              },
              {
                ...options,
                requestLimiter: requestRateLimit ? limiters.limiter('requests', requestRateLimit) : null,
                preAuthRateLimiter: preAuthRateLimit ? limiters.limiter('pre-auth', preAuthRateLimit) : null,
              },
            ),
          inject: [
            Kernel,
            Authenticator,
            SessionStore,
            Wire,
            Downloads,
            EventEmitter2,
            Telemetry,
            SharedState,
          ],
        },
      ],
      exports: [McpEdge],
    };
  }
}
