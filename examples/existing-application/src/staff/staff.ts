import { Injectable } from '@nestjs/common';

export interface Employee {
  /** The id of their row in `_User`. */
  readonly id: string;
  readonly role: 'mechanic' | 'manager';
  readonly branch: string;
}

/** Who works here. A real application asks its database or its directory, and keeps no passwords in its code. */
@Injectable()
export class Staff {
  private readonly employees: readonly (Employee & { readonly password: string })[] = [
    { id: 'ada', role: 'manager', branch: 'north', password: 'ada-in-development' },
    { id: 'bob', role: 'mechanic', branch: 'north', password: 'bob-in-development' },
    { id: 'cid', role: 'mechanic', branch: 'south', password: 'cid-in-development' },
  ];

  find(id: string): Employee | null {
    return this.employees.find((employee) => employee.id === id) ?? null;
  }

  signIn(id: string, password: string): Employee | null {
    return this.employees.find((employee) => employee.id === id && employee.password === password) ?? null;
  }
}
