import {
  type DynamicModule,
  type InjectionToken,
  Logger,
  type MiddlewareConsumer,
  Module,
  type ModuleMetadata,
  type NestModule,
  type Provider,
} from '@nestjs/common';
import { ApprovalService } from '#approvals';
import { AuditSink, AuditTrail } from '#audit';
import { Authenticator, RecordedAuthenticator } from '#auth';
import { MetadataAudit, SealedText, StateKeys } from '#dispatcher';
import { ExportOverview } from '#exports';
import { Policies } from '#policy';
import { SharedState } from '#state';
import { McpEdge } from '#streaming';
import { TaskOverview } from '#tasks';
import { SecurityHeadersMiddleware } from './console.guards.js';
import { ApprovalsController } from './controllers/approvals.controller.js';
import { AuditController } from './controllers/audit.controller.js';
import { ExplainController } from './controllers/explain.controller.js';
import { LiveController } from './controllers/live.controller.js';
import { HeadController, OtherPathsController } from './controllers/other-paths.controller.js';
import { PageController, PageFilesController } from './controllers/page.controller.js';
import { PolicyController } from './controllers/policy.controller.js';
import { SessionController } from './controllers/session.controller.js';
import { StatusController } from './controllers/status.controller.js';
import { LiveRecords } from './live-records.js';
import { LiveStreams } from './live-streams.js';
import { OperatorGate, OperatorNotes } from './operator-gate.js';
import { OperatorSessions } from './operator-sessions.js';
import { PageFiles } from './page-files.js';
import { SignIn } from './sign-in.js';

export interface ConsoleOptions {
  /** Provide the live records, the status of the service and simulations. */
  readonly providers: Provider[];
  /** Names of the agents that are operators in the current configuration. */
  readonly operators: () => readonly string[];
  /** Names of the agents that may decide approvals. */
  readonly approvers: readonly string[];
  /** With `index.html`, scripts and styles of the page. */
  readonly folder: string;
}

/** What the console takes from the instance. */
export const CONSOLE_IMPORTS: readonly InjectionToken[] = [
  ApprovalService,
  AuditSink,
  AuditTrail,
  Authenticator,
  McpEdge,
  MetadataAudit,
  Policies,
  SharedState,
  StateKeys,
];

/**
 * Limits of sign-in attempts per remote network, and of requests per operator, each per minute and over all replicas.
 */
const SIGN_INS = { limit: 20, window: 60 };
const REQUESTS = { limit: 600, window: 60 };

const FORGED = { cause: 'a session of the console that was not made here' };

/** The operator console: its page, and the API of the page. */
@Module({
  // The first route of a path answers.
  controllers: [
    PageController,
    PageFilesController,
    HeadController,
    SessionController,
    LiveController,
    ApprovalsController,
    ExplainController,
    PolicyController,
    AuditController,
    StatusController,
    OtherPathsController,
  ],
})
export class ConsoleModule implements NestModule {
  /** @param imports provide `CONSOLE_IMPORTS` */
  static register(options: ConsoleOptions, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: ConsoleModule,
      imports: [...(imports ?? [])],
      providers: [
        ...options.providers,
        {
          provide: OperatorNotes,
          useFactory: (audit: AuditSink) => new OperatorNotes(audit, new Logger('Console')),
          inject: [AuditSink],
        },
        {
          provide: OperatorSessions,
          useFactory: (keys: StateKeys, { endedSessions }: SharedState) =>
            new OperatorSessions({
              sealed: new SealedText(keys, 'parley operator session'),
              ended: endedSessions,
            }),
          inject: [StateKeys, SharedState],
        },
        {
          provide: OperatorGate,
          useFactory: (authenticator: Authenticator, sessions: OperatorSessions, { limiters }: SharedState) =>
            new OperatorGate({
              authenticator,
              sessions,
              forged: (request) => {
                if (authenticator instanceof RecordedAuthenticator)
                  authenticator.recordRefused(request, FORGED);
              },
              operators: options.operators,
              limiter: limiters.limiter('console', REQUESTS),
            }),
          inject: [Authenticator, OperatorSessions, SharedState],
        },
        {
          provide: SignIn,
          useFactory: (
            gate: OperatorGate,
            sessions: OperatorSessions,
            notes: OperatorNotes,
            { limiters }: SharedState,
          ) =>
            new SignIn({
              gate,
              sessions,
              notes,
              limiter: limiters.limiter('console sign-in', SIGN_INS),
              approvers: options.approvers,
              log: new Logger('Console'),
            }),
          inject: [OperatorGate, OperatorSessions, OperatorNotes, SharedState],
        },
        {
          provide: LiveStreams,
          useFactory: (records: LiveRecords, { unread }: McpEdge) => new LiveStreams(records, unread),
          inject: [LiveRecords, McpEdge],
        },
        { provide: PageFiles, useFactory: () => new PageFiles(options.folder) },
        {
          provide: TaskOverview,
          useFactory: ({ tasks }: SharedState) => new TaskOverview(tasks),
          inject: [SharedState],
        },
        {
          provide: ExportOverview,
          useFactory: ({ exports }: SharedState) => new ExportOverview(exports),
          inject: [SharedState],
        },
      ],
    };
  }

  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(SecurityHeadersMiddleware).forRoutes('console/*rest');
  }
}
