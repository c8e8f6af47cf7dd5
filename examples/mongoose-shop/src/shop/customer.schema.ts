import { Prop, Schema, SchemaFactory } from '@nestjs/mongoose';
import type { HydratedDocument } from 'mongoose';

@Schema({ _id: false })
export class Address {
  @Prop({ type: String })
  city!: string;

  @Prop({ type: String, select: false })
  street!: string;
}

@Schema({ timestamps: true })
export class Customer {
  @Prop({ type: String, required: true })
  shop!: string;

  @Prop({ type: String, required: true })
  name!: string;

  @Prop({ type: SchemaFactory.createForClass(Address) })
  address!: Address;

  @Prop({ type: String, select: false })
  passwordHash!: string;
}

export type CustomerDocument = HydratedDocument<Customer>;
export const CustomerSchema = SchemaFactory.createForClass(Customer);
