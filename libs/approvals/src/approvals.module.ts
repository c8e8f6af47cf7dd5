import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { Approver } from '#dispatcher';
import { APPROVAL_OPTIONS, ApprovalService } from './approval-service.js';
import { ApprovalAnnouncements, type ApprovalsModuleOptions, ConfiguredApprover } from './chosen-approver.js';

/** Who decides on calls that need an approval, and where approvers see the calls that wait for them. */
@Module({
  providers: [ApprovalAnnouncements, { provide: Approver, useClass: ConfiguredApprover }, ApprovalService],
  exports: [Approver, ApprovalService],
})
export class ApprovalsModule {
  /** @param imports provide governed data, the audit sink, the shared state and the events */
  static register(options: ApprovalsModuleOptions, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: ApprovalsModule,
      imports: [...(imports ?? [])],
      providers: [{ provide: APPROVAL_OPTIONS, useValue: options }],
    };
  }
}
