import { Module } from '@nestjs/common';
import { StaffModule } from '../staff/staff.module.js';
import { PriceList } from './price-list.js';
import { QuotesController } from './quotes.controller.js';

@Module({
  imports: [StaffModule],
  controllers: [QuotesController],
  providers: [PriceList],
  exports: [PriceList],
})
export class QuotesModule {}
