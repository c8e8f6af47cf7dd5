import { Module } from '@nestjs/common';
import { Authenticator, AuthModule, CurrentDocuments } from '#auth';
import { CoreModule, provideFromInstance } from '#core';
import { SharedState, StateModule } from '#state';
import { KernelModule } from '#dispatcher';
import { TelemetryModule } from '#telemetry';
import { ToolRunner } from '#tools';
import { Downloads, EdgeDependencies, EdgeSettings, type McpEdgeOptions } from './http/edge-dependencies.js';
import { McpEdge } from './http/mcp-edge.js';
import {
  AuthorizationServerController,
  ProtectedResourceController,
} from './http/oauth-documents.controller.js';
import { ToolsController } from './http/tools.controller.js';
import { PendingClientRequests } from './sessions/client-requests.js';
import { ListeningStreams, ReplicatedListChanges } from './sessions/listening-streams.js';
import { ReplicaSignals } from './sessions/replica-signals.js';
import { Wire } from './sessions/wire.js';
import { Resumption } from './sse/resumable-stream.js';

/** The signals between clients and calls besides request and answer: cancellation, list changes, streams of sessions. */
@Module({
  imports: [CoreModule, StateModule],
  providers: [
    ReplicaSignals,
    ListeningStreams,
    PendingClientRequests,
    ReplicatedListChanges,
    Resumption,
    Wire,
  ],
  exports: [Wire, ListeningStreams, ReplicatedListChanges],
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
function toSettings(
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
  imports: [StateModule, WireModule, KernelModule, AuthModule, TelemetryModule],
  providers: [
    { provide: EdgeSettings, useFactory: toSettings, inject: [STREAMING_OPTIONS, SharedState] },
    provideFromInstance(Downloads),
    EdgeDependencies,
    McpEdge,
  ],
  exports: [McpEdge],
})
export class StreamingModule {}

/** What callers read beside MCP, in the application of the routes beside MCP: their tools, and where they get a token. */
@Module({
  controllers: [ToolsController, ProtectedResourceController, AuthorizationServerController],
  providers: [Authenticator, CurrentDocuments, McpEdge, ToolRunner].map(provideFromInstance),
})
export class CallerRoutesModule {}
