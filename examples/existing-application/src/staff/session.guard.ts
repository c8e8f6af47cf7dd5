import {
  type CanActivate,
  type ExecutionContext,
  Injectable,
  SetMetadata,
  UnauthorizedException,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request } from './request.js';
import { Sessions } from './sessions.js';

const PUBLIC = 'repairs:public';
export const Public = () => SetMetadata(PUBLIC, true);

/** Guards every route of the application. */
@Injectable()
export class SessionGuard implements CanActivate {
  constructor(
    private readonly sessions: Sessions,
    private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (this.reflector.getAllAndOverride(PUBLIC, [context.getHandler(), context.getClass()])) return true;
    const request = context.switchToHttp().getRequest<Request>();
    const employee = await this.sessions.employeeOf(request.headers.authorization);
    if (!employee) throw new UnauthorizedException();
    request.employee = employee;
    return true;
  }
}
