import { Injectable } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { jwtVerify, SignJWT } from 'jose';
import { type Employee, Staff } from './staff.js';

const BEARER = /^Bearer (\S+)$/;

/** The application's own sessions: a signed token that names an employee for an hour. */
@Injectable()
export class Sessions {
  private readonly secret: Uint8Array;

  constructor(
    private readonly staff: Staff,
    config: ConfigService,
  ) {
    this.secret = new TextEncoder().encode(config.getOrThrow<string>('SESSION_SECRET'));
  }

  begin({ id }: Employee): Promise<string> {
    const token = new SignJWT().setProtectedHeader({ alg: 'HS256' }).setSubject(id).setIssuedAt();
    return token.setExpirationTime('1h').sign(this.secret);
  }

  /** The employee of the session in an `Authorization` header; null: no session, or a former employee. */
  async employeeOf(authorization: string | undefined): Promise<Employee | null> {
    const token = BEARER.exec(authorization ?? '')?.[1];
    if (token === undefined) return null;
    try {
      const { payload } = await jwtVerify(token, this.secret, { algorithms: ['HS256'] });
      return this.staff.find(payload.sub ?? '');
    } catch {
      return null;
    }
  }
}
