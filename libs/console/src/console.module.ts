import {
  type DynamicModule,
  type InjectionToken,
  type MiddlewareConsumer,
  Module,
  type ModuleMetadata,
  type NestModule,
  type Provider,
} from '@nestjs/common';
import { ApprovalService } from '#approvals';
import { AuditSink, AuditTrail } from '#audit';
import { Authenticator } from '#auth';
import { MetadataAudit, StateKeys } from '#dispatcher';
import { ExportOverview } from '#exports';
import { Policies } from '#policy';
import { SharedState } from '#state';
import { McpEdge } from '#streaming';
import { TaskOverview } from '#tasks';
import { DeclaredMethods } from '#tools';
import { SecurityHeadersMiddleware } from './console.guards.js';
import { ApprovalsController } from './controllers/approvals.controller.js';
import { AuditController } from './controllers/audit.controller.js';
import { ExplainController } from './controllers/explain.controller.js';
import { LiveController, LiveStreams } from './controllers/live.controller.js';
import {
  HeadController,
  OtherPathsController,
  PageController,
  PageFiles,
  PageFilesController,
} from './controllers/page.controller.js';
import { OverviewController } from './controllers/overview.controller.js';
import { PolicyController } from './controllers/policy.controller.js';
import { OidcCallbackController, SessionController } from './controllers/session.controller.js';
import { StatusController } from './controllers/status.controller.js';
import { OIDC_SETTING, type OidcSetting, OidcSignIn } from './oidc-sign-in.js';
import { OPERATOR_RIGHTS, OperatorGate, OperatorNotes, type OperatorRights } from './operator-gate.js';
import { OperatorSessions } from './operator-sessions.js';
import { SignIn } from './sign-in.js';

export interface ConsoleOptions extends OperatorRights {
  /** Provide the live records, the overviews, the status of the service and simulations. */
  readonly providers: Provider[];
  /** Null: operators sign in with their credentials alone. */
  readonly oidc: OidcSetting | null;
  /** With `index.html`, scripts and styles of the page. */
  readonly folder: string;
}

/** What the console takes from the instance. */
export const CONSOLE_IMPORTS: readonly InjectionToken[] = [
  ApprovalService,
  AuditSink,
  AuditTrail,
  Authenticator,
  DeclaredMethods,
  McpEdge,
  MetadataAudit,
  Policies,
  SharedState,
  StateKeys,
];

/** The operator console: its page, and the API of the page. */
@Module({
  // The first route of a path answers.
  controllers: [
    PageController,
    PageFilesController,
    HeadController,
    SessionController,
    OidcCallbackController,
    LiveController,
    OverviewController,
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
        { provide: OPERATOR_RIGHTS, useValue: options satisfies OperatorRights },
        OperatorNotes,
        OperatorSessions,
        OperatorGate,
        SignIn,
        { provide: OIDC_SETTING, useValue: options.oidc },
        OidcSignIn,
        LiveStreams,
        { provide: PageFiles, useValue: new PageFiles(options.folder) },
        TaskOverview,
        ExportOverview,
      ],
    };
  }

  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(SecurityHeadersMiddleware).forRoutes('console/*rest');
  }
}
