import { Module } from '@nestjs/common';
import { AuditModule } from '#audit';
import { CoreModule } from '#core';
import { DataModule } from '#data';
import { StateModule } from '#state';
import { ApprovalService } from './approval-service.js';
import { ApprovalAnnouncements, ConfiguredApprover } from './chosen-approver.js';

/** Who decides on calls that need an approval, and where approvers see the calls that wait for them. */
@Module({
  imports: [CoreModule, StateModule, DataModule, AuditModule],
  providers: [ApprovalAnnouncements, ConfiguredApprover, ApprovalService],
  exports: [ConfiguredApprover, ApprovalService],
})
export class ApprovalsModule {}
