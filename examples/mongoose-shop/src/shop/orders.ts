import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectModel } from '@nestjs/mongoose';
import { type Model, Types } from 'mongoose';
import { Customer } from './customer.schema.js';
import { Order } from './order.schema.js';

/** The application's own use of its models. */
@Injectable()
export class Orders implements OnModuleInit {
  constructor(
    @InjectModel(Customer.name) private readonly customers: Model<Customer>,
    @InjectModel(Order.name) private readonly orders: Model<Order>,
  ) {}

  openOf(shop: string): Promise<{ number: string; total: string }[]> {
    return this.orders
      .find({ shop, status: 'open' })
      .sort({ number: 1 })
      .then((found) => found.map(({ number, total }) => ({ number, total: total.toString() })));
  }

  async markPaid(shop: string, number: string): Promise<boolean> {
    const { matchedCount } = await this.orders.updateOne({ shop, number }, { status: 'paid' });
    return matchedCount === 1;
  }

  /** What an empty database begins with. */
  async onModuleInit(): Promise<void> {
    if ((await this.customers.estimatedDocumentCount()) > 0) return;
    const ines = await this.customers.create(customer('north', 'Ines', 'Porto'));
    const jo = await this.customers.create(customer('north', 'Jo', 'Lyon'));
    const kim = await this.customers.create(customer('south', 'Kim', 'Oslo'));
    await this.orders.create([
      order('north', 'N-1', ines, 'open', '1200.10', [{ sku: 'bell', qty: 2 }]),
      order('north', 'N-2', ines, 'paid', '0.30', [{ sku: 'pump', qty: 1 }]),
      order('north', 'N-3', jo, 'open', '99.95', [
        { sku: 'bell', qty: 1 },
        { sku: 'lamp', qty: 4 },
      ]),
      order('south', 'S-1', kim, 'open', '12345678901234567890.12', [{ sku: 'lamp', qty: 1 }]),
    ]);
  }
}

const customer = (shop: string, name: string, city: string) => ({
  shop,
  name,
  address: { city, street: `secret street of ${name}` },
  passwordHash: `secret hash of ${name}`,
});

const order = (
  shop: string,
  number: string,
  { _id }: { _id: Types.ObjectId },
  status: Order['status'],
  total: string,
  lines: Order['lines'],
) => ({ shop, number, customer: _id, status, total: new Types.Decimal128(total), lines, margin: 0.31 });
