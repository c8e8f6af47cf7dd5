import { Injectable, UseInterceptors } from '@nestjs/common';
import { Tool, type ToolCall } from '@parley/server';
import { IsIn, IsInt, IsOptional, Min } from 'class-validator';
import { concatMap, concatWith, defer, delay, from, type Observable, of } from 'rxjs';
import { z } from 'zod';
import { AsOf } from './as-of.interceptor.js';
import { SHELVES } from './shelves.js';

/** Milliseconds that the scanner takes for a shelf. */
const SCAN = 200;

/** Arguments by class-validator: what does not fit never reaches the tool. */
class Reorder {
  @IsInt()
  @Min(1)
  below!: number;

  @IsOptional()
  @IsIn(SHELVES)
  shelf?: string;
}

/** Results by zod: clients get them as structured content, and the schema with the tool. */
const ToReorder = z.object({
  items: z.array(z.object({ name: z.string(), stock: z.number().int() })),
  as_of: z.iso.datetime(),
});

@Injectable()
export class CountingTools {
  /** What it emits is its progress; the last emission is its result. It is unsubscribed when the call ends early. */
  @Tool({ name: 'recount', description: 'Scans every shelf, which takes a while.' })
  recount(_: object, call: ToolCall): Observable<object> {
    let pieces = 0;
    let scanned = 0;
    const scan = async (shelf: string) => {
      const items = await call.records.find('Item', { where: { shelf } });
      pieces += items.reduce((sum, { stock }) => sum + Number(stock), 0);
      scanned += 1;
      return { progress: scanned, total: SHELVES.length, message: `shelf ${shelf}` };
    };
    return from(SHELVES).pipe(
      concatMap((shelf) => of(shelf).pipe(delay(SCAN), concatMap(scan))),
      concatWith(defer(() => of({ pieces }))),
    );
  }

  @UseInterceptors(AsOf)
  @Tool({ name: 'reorder', description: 'What runs out soon.', input: Reorder, output: ToReorder })
  async reorder({ below, shelf }: Reorder, call: ToolCall) {
    const where = { stock: { $lt: below }, ...(shelf !== undefined && { shelf }) };
    const rows = await call.records.find('Item', { where, keys: ['name', 'stock'], order: 'stock' });
    return { items: rows.map(({ name, stock }) => ({ name, stock })) };
  }
}
