import { Module } from '@nestjs/common';
import { ManagersOnly } from './managers.guard.js';
import { Sessions } from './sessions.js';
import { StaffController } from './staff.controller.js';
import { Staff } from './staff.js';

@Module({
  controllers: [StaffController],
  providers: [Staff, Sessions, ManagersOnly],
  exports: [Staff, Sessions, ManagersOnly],
})
export class StaffModule {}
