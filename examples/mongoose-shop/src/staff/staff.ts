import { Injectable } from '@nestjs/common';
import type { IncomingHttpHeaders } from 'node:http';

export interface Employee {
  readonly id: string;
  readonly role: 'seller' | 'manager';
  readonly shop: string;
}

export interface StaffRequest {
  readonly headers: IncomingHttpHeaders;
  employee: Employee;
}

const BEARER = /^Bearer (\S+)$/;

/** Who works here. A real application asks its database, and keeps no keys in its code. */
@Injectable()
export class Staff {
  private readonly employees = new Map<string, Employee>([
    ['ada-in-development', { id: 'ada', role: 'manager', shop: 'north' }],
    ['bob-in-development', { id: 'bob', role: 'seller', shop: 'north' }],
    ['cid-in-development', { id: 'cid', role: 'seller', shop: 'south' }],
  ]);

  /** The employee of an `Authorization` header; null: nobody. */
  employeeOf(authorization: string | undefined): Employee | null {
    const key = BEARER.exec(authorization ?? '')?.[1];
    return (key !== undefined && this.employees.get(key)) || null;
  }
}
