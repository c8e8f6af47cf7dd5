import { Injectable, UseGuards } from '@nestjs/common';
import { Tool, type ToolCall } from '@parley/server';
import { z } from 'zod';
import { PriceList } from '../quotes/price-list.js';
import { ManagersOnly } from '../staff/managers.guard.js';

const Input = z.object({ repair: z.string().describe('Its objectId') });
const Output = z.object({ bicycle: z.string(), labour: z.number(), total: z.number() });

@Injectable()
export class QuoteTools {
  constructor(private readonly prices: PriceList) {}

  @UseGuards(ManagersOnly)
  @Tool({
    name: 'quote_repair',
    description: 'What a repair will cost, in euros.',
    input: Input,
    output: Output,
  })
  async quote({ repair }: z.output<typeof Input>, call: ToolCall) {
    // A repair of another branch, or one that the employee may not read, is not found.
    const { rows } = await call.records.get('Repair', repair);
    const [row] = rows;
    const quote = this.prices.quote(String(call.agent.tenantId), Number(row?.['hours']));
    return { bicycle: String(row?.['bicycle']), ...quote };
  }
}
