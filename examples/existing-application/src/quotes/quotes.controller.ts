import { Controller, Get, ParseFloatPipe, Query, Req, UseGuards } from '@nestjs/common';
import { ManagersOnly } from '../staff/managers.guard.js';
import type { Request } from '../staff/request.js';
import { PriceList } from './price-list.js';

@UseGuards(ManagersOnly)
@Controller('quotes')
export class QuotesController {
  constructor(private readonly prices: PriceList) {}

  @Get()
  quote(@Query('hours', ParseFloatPipe) hours: number, @Req() { employee }: Request) {
    return this.prices.quote(employee?.branch ?? '', hours);
  }
}
