import { Injectable } from '@nestjs/common';
import {
  AgentFields,
  AgentMethod,
  ParseClass,
  Refused,
  refusals,
  Tool,
  type ToolCall,
  ToolRunner,
} from '@parley/server';
import type { TestingOptions } from './testing-options.js';

/** A value that no agent of these tests may read. */
export const SECRET = 'never-told-5f1c';

@Injectable()
@ParseClass('Invoice')
@AgentFields('number', 'total', 'due', 'org')
export class InvoiceTools {
  constructor(private readonly runner: ToolRunner) {}

  @Tool({ name: 'open_total', description: 'What is owed.' })
  async openTotal(_: object, call: ToolCall) {
    call.progress({ progress: 1, total: 2, message: 'reading' });
    const rows = await call.records.find('Invoice', { keys: ['total'] });
    return { total: rows.reduce((sum, row) => sum + Number(row['total']), 0) };
  }

  @Tool({ name: 'breaks', description: 'Throws an error.' })
  breaks() {
    throw new Error(`broken: ${SECRET}`);
  }

  @Tool({ name: 'tries', description: 'Calls another tool, which is refused.' })
  async tries(_: object, call: ToolCall) {
    const outcome = await this.runner.run('query_class', { class_name: 'Payroll' }, call);
    return { tried: outcome.ok };
  }

  @Tool({ name: 'asks', description: 'Asks the person.' })
  async asks(_: object, call: ToolCall) {
    const answer = await call.ask('colour', {
      kind: 'form',
      message: 'Which colour?',
      schema: { type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'] },
    });
    return answer;
  }

  @Tool({ name: 'says_no', description: 'Refuses by itself.' })
  saysNo() {
    throw new Refused(refusals.invalidArgument('not today'));
  }

  @AgentMethod({ type: 'instance', permission: 'write' })
  pay() {
    return 'paid';
  }
}

const own = (user: string) => ({ ACL: { [user]: { read: true, write: true } } });

/** Invoices of two tenants, one readable by Ada only, and a hidden class. */
export const INVOICES: TestingOptions = {
  seed: {
    schemas: [
      {
        className: 'Invoice',
        fields: {
          number: { type: 'String' },
          total: { type: 'Number' },
          due: { type: 'Date' },
          org: { type: 'String' },
          note: { type: 'String' },
        },
      },
      { className: 'Payroll', fields: { salary: { type: 'Number' } } },
    ],
    users: [
      { objectId: 'ada', username: 'ada' },
      { objectId: 'bob', username: 'bob' },
    ],
    roles: [],
    sessions: [{ sessionToken: 'r:of-ada', user: 'ada', expiresAt: '2099-01-01T00:00:00.000Z' }],
    objects: {
      Invoice: [
        { objectId: 'i1', number: 'A-1', total: 10, org: 'acme', note: SECRET },
        { objectId: 'i2', number: 'A-2', total: 20, org: 'acme', ...own('ada') },
        { objectId: 'i3', number: 'G-1', total: 400, org: 'globex' },
      ],
      Payroll: [{ objectId: 'p1', salary: 1 }],
    },
  },
  policy: {
    unlistedClasses: 'allow',
    requireApprovalFor: ['write'],
    classes: {
      Invoice: { fields: ['number', 'total', 'org'], tenantScope: { field: 'org' } },
      Payroll: { hidden: true },
      _User: { fields: ['username'] },
    },
  },
  agents: {
    clerk: { permissions: 'readonly', tenantId: 'acme' },
    writer: { permissions: 'write', tenantId: 'acme' },
    guest: { permissions: 'readonly', tenantId: 'acme', classes: { only: ['_User'] } },
    portal: { identity: { session: 'caller' }, tenantId: 'acme' },
  },
  tools: [InvoiceTools],
};
