import { Module } from '@nestjs/common';
import { AuditModule } from '#audit';
import { Authenticator } from '#auth';
import { CoreModule, provideFromInstance } from '#core';
import { DataModule } from '#data';
import { StateModule } from '#state';
import { McpEdge } from '#streaming';
import { Changes } from '#tools';
import { ApprovalService } from './approval-service.js';
import { ApprovalRoutesController } from './approvals.controller.js';
import { ApprovalAnnouncements, ConfiguredApprover } from './chosen-approver.js';

/** Who decides on calls that need an approval, and where approvers see the calls that wait for them. */
@Module({
  imports: [CoreModule, StateModule, DataModule, AuditModule],
  providers: [provideFromInstance(Changes), ApprovalAnnouncements, ConfiguredApprover, ApprovalService],
  exports: [ConfiguredApprover, ApprovalService],
})
export class ApprovalsModule {}

/** The routes of approvers, in the application of the routes beside MCP. */
@Module({
  controllers: [ApprovalRoutesController],
  providers: [ApprovalService, Authenticator, McpEdge].map(provideFromInstance),
})
export class ApprovalRoutesModule {}
