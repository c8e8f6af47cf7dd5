import { type CanActivate, type ExecutionContext, Injectable, Module, UseGuards } from '@nestjs/common';
import {
  AgentFields,
  ParleyExecutionContext,
  ParseClass,
  Refused,
  refusals,
  Tool,
  type ToolCall,
} from '@parley/server';

@Injectable()
export class OpenHours {
  readonly isOpen = true;
}

@Injectable()
class WhileOpen implements CanActivate {
  constructor(private readonly hours: OpenHours) {}

  canActivate(context: ExecutionContext): boolean {
    return this.hours.isOpen && ParleyExecutionContext.create(context).getAgent().principal !== '';
  }
}

@Injectable()
@ParseClass('Invoice')
@AgentFields('number', 'due', 'total')
export class InvoiceTools {
  @UseGuards(WhileOpen)
  @Tool({
    name: 'overdue_invoices',
    description: 'Invoices that were due before a date.',
    input: {
      type: 'object',
      properties: { before: { type: 'string', format: 'date-time' } },
      required: ['before'],
    },
  })
  async overdue({ before }: { before: string }, call: ToolCall) {
    const due = new Date(before);
    if (Number.isNaN(due.getTime())) throw new Refused(refusals.invalidArgument('before is no date'));
    await call.progress({ progress: 1, total: 2, message: 'looking' });
    const rows = await call.records.find('Invoice', {
      where: { due: { $lt: { __type: 'Date', iso: due.toISOString() } } },
    });
    return { invoices: rows.map((row) => row['number']) };
  }
}

@Module({ providers: [InvoiceTools, OpenHours] })
export class BillingModule {}
