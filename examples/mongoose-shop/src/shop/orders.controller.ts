import { Controller, Get, NotFoundException, Param, Post, Req } from '@nestjs/common';
import type { StaffRequest } from '../staff/staff.js';
import { Orders } from './orders.js';

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: Orders) {}

  @Get()
  open(@Req() { employee }: StaffRequest) {
    return this.orders.openOf(employee.shop);
  }

  @Post(':number/paid')
  async paid(@Req() { employee }: StaffRequest, @Param('number') number: string) {
    if (!(await this.orders.markPaid(employee.shop, number))) throw new NotFoundException();
    return { number, status: 'paid' };
  }
}
