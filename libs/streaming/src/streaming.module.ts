import { Module } from '@nestjs/common';
import { Authenticator } from '#auth';
import { provideFromInstance } from '#core';
import { SharedState, StateModule } from '#state';
import { KernelModule } from '#dispatcher';
import { TelemetryModule } from '#telemetry';
import { Downloads, EdgeDependencies, EdgeSettings, type McpEdgeOptions } from './http/edge-dependencies.js';
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

/** The path of MCP, where no prefix precedes it. */
export const MCP_PATH = Symbol('path of MCP');

/** The signals between clients and calls besides request and answer: cancellation, list changes, streams of sessions. */
@Module({
  imports: [StateModule],
  providers: [
    { provide: ServedAt, useFactory: (path: string) => new ServedAt(path), inject: [MCP_PATH] },
    ReplicaSignals,
    ListeningStreams,
    PendingClientRequests,
    ReplicatedListChanges,
    Resumption,
    Wire,
  ],
  exports: [ServedAt, Wire, ListeningStreams, ReplicatedListChanges],
})
export class WireModule {}

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

export const STREAMING_OPTIONS = Symbol('options of the endpoint');

/**
 * Serves MCP over HTTP, on plain Node requests: a Nest HTTP adapter passes requests of its path to it before Express does.
 */
@Module({
  imports: [StateModule, WireModule, KernelModule, TelemetryModule],
  providers: [
    { provide: EdgeSettings, useFactory: settingsOf, inject: [STREAMING_OPTIONS, SharedState] },
    provideFromInstance(Authenticator),
    provideFromInstance(Downloads),
    EdgeDependencies,
    McpEdge,
  ],
  exports: [McpEdge],
})
export class StreamingModule {}
