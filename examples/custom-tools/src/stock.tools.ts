import { Injectable } from '@nestjs/common';
import { Refused, refusals, type RowWritingCall, Tool } from '@parley/server';
import { z } from 'zod';
import { SHELVES } from './shelves.js';

const WriteOff = z.object({
  item: z.string().describe('Its objectId'),
  pieces: z.number().int().min(1),
  reason: z.string().min(3).max(200),
});
const Arrival = z.object({ name: z.string().min(1).max(80), pieces: z.number().int().min(1) });

@Injectable()
export class StockTools {
  /** Of tier write, so a person is asked first. `needs` gives it access to writing rows; the environment has to permit it as well. */
  @Tool({
    name: 'write_off',
    description: 'Takes broken or lost pieces out of the books.',
    permission: 'write',
    needs: ['rows'],
    annotations: { destructiveHint: true },
    input: WriteOff,
  })
  async writeOff({ item, pieces }: z.output<typeof WriteOff>, call: RowWritingCall) {
    const [row] = (await call.records.get('Item', item)).rows;
    const stock = Number(row?.['stock']);
    if (stock < pieces)
      throw new Refused(refusals.invalidArgument(`there are ${stock} pieces, not ${pieces}`));
    const left = await call.writes.update('Item', item, { stock: { __op: 'Increment', amount: -pieces } });
    return { item, stock: left['stock'] };
  }

  /** Asks the person at the client. The code before `ask` may run twice, so it has no effects. */
  @Tool({
    name: 'ask_where',
    description: 'Asks the person at the client where an arrival should go.',
    input: Arrival,
  })
  async askWhere({ name, pieces }: z.output<typeof Arrival>, call: Pick<RowWritingCall, 'ask'>) {
    const answer = await call.ask('shelf', {
      kind: 'form',
      message: `${pieces} × ${name}: on which shelf?`,
      schema: {
        type: 'object',
        properties: { shelf: { type: 'string', enum: [...SHELVES] } },
        required: ['shelf'],
      },
    });
    return answer.action === 'accept' ? { name, shelf: answer.content['shelf'] } : { name, shelf: null };
  }
}
