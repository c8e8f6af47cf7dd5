import { Injectable } from '@nestjs/common';
import { Tool, type ToolCall } from '@parley/server';
import { setTimeout as sleep } from 'node:timers/promises';

@Injectable()
export class ParcelTools {
  @Tool({ name: 'weigh_parcels', description: 'Weighs parcel by parcel, and says so.' })
  async weigh(_: object, call: ToolCall) {
    const parcels = await call.records.find('Parcel', { order: 'to' });
    let grams = 0;
    for (const [at, parcel] of parcels.entries()) {
      call.progress({ progress: at + 1, total: parcels.length, message: String(parcel['to']) });
      await sleep(200, undefined, { signal: call.signal });
      grams += Number(parcel['grams']);
    }
    // Which process answered, for who wants to see that it may be either.
    return { grams, replica: process.pid };
  }
}
