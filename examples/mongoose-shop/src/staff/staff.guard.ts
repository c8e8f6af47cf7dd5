import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';
import { Staff, type StaffRequest } from './staff.js';

/** Guards every route of the application. */
@Injectable()
export class StaffGuard implements CanActivate {
  constructor(private readonly staff: Staff) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<StaffRequest>();
    const employee = this.staff.employeeOf(request.headers.authorization);
    if (!employee) throw new UnauthorizedException();
    request.employee = employee;
    return true;
  }
}
