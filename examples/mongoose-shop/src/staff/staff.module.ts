import { Module } from '@nestjs/common';
import { StaffGuard } from './staff.guard.js';
import { Staff } from './staff.js';

@Module({ providers: [Staff, StaffGuard], exports: [Staff, StaffGuard] })
export class StaffModule {}
