import { Injectable } from '@nestjs/common';

const HOURLY: Readonly<Record<string, number>> = { north: 60, south: 54 };

/** What work costs, in euros. */
@Injectable()
export class PriceList {
  quote(branch: string, hours: number): { readonly labour: number; readonly total: number } {
    const labour = (HOURLY[branch] ?? 66) * hours;
    return { labour, total: Math.round(labour * 1.2 * 100) / 100 };
  }
}
