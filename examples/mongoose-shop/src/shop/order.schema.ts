import { Prop, Schema, SchemaFactory } from '@nestjs/mongoose';
import { type HydratedDocument, Schema as MongooseSchema, type Types } from 'mongoose';

export const STATUSES = ['open', 'paid', 'shipped'] as const;

@Schema({ _id: false })
export class Line {
  @Prop({ type: String, required: true })
  sku!: string;

  @Prop({ type: Number, required: true })
  qty!: number;
}

@Schema({ timestamps: { createdAt: 'placedAt', updatedAt: 'changedAt' } })
export class Order {
  @Prop({ type: String, required: true })
  shop!: string;

  @Prop({ type: String, required: true })
  number!: string;

  @Prop({ type: MongooseSchema.Types.ObjectId, ref: 'Customer', required: true })
  customer!: Types.ObjectId;

  @Prop({ type: String, enum: STATUSES, default: 'open' })
  status!: (typeof STATUSES)[number];

  @Prop({ type: MongooseSchema.Types.Decimal128, required: true })
  total!: Types.Decimal128;

  @Prop({ type: [SchemaFactory.createForClass(Line)] })
  lines!: Line[];

  @Prop({ type: Number, select: false })
  margin!: number;
}

export type OrderDocument = HydratedDocument<Order>;
export const OrderSchema = SchemaFactory.createForClass(Order);
