import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { ParleyExecutionContext } from '@parley/server';
import type { Request } from './request.js';
import { Staff } from './staff.js';

/** One rule for routes and tools alike. */
@Injectable()
export class ManagersOnly implements CanActivate {
  constructor(private readonly staff: Staff) {}

  canActivate(context: ExecutionContext): boolean {
    const employee = ParleyExecutionContext.isTool(context)
      ? this.staff.find(ParleyExecutionContext.create(context).getAgent().principal)
      : context.switchToHttp().getRequest<Request>().employee;
    return employee?.role === 'manager';
  }
}
