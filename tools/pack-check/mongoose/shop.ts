import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  getConnectionToken,
  getModelToken,
  MongooseModule,
  Prop,
  Schema,
  SchemaFactory,
} from '@nestjs/mongoose';
import { EmbeddedDatabase, Parley, ParleyModule, type ParleyModuleOptions } from '@parley/server';
import { declareClasses } from '@parley/server/mongoose';
import type { Connection, Model } from 'mongoose';

@Schema()
class Order {
  @Prop({ type: String, required: true })
  number!: string;

  @Prop({ type: Number, select: false })
  margin!: number;
}

const options = (connection: Connection, orders: Model<Order>): ParleyModuleOptions => ({
  database: { connection, storage: 'plain' },
  classes: declareClasses([orders]),
  agents: { clerk: { permissions: 'readonly' } },
});

async function start(): Promise<void> {
  const database = await EmbeddedDatabase.start();
  const models = MongooseModule.forFeature([
    { name: Order.name, schema: SchemaFactory.createForClass(Order) },
  ]);

  @Module({
    imports: [
      MongooseModule.forRoot(database.uri, { dbName: 'shop' }),
      ParleyModule.forRootAsync({
        imports: [models],
        inject: [getConnectionToken(), getModelToken(Order.name)],
        useFactory: options,
      }),
    ],
  })
  class ShopModule {}

  const app = await NestFactory.createApplicationContext(ShopModule, { logger: ['error'] });
  const connection = app.get<Connection>(getConnectionToken());
  await connection.model(Order.name).create({ number: 'N-1', margin: 31 });
  const parley = app.get(Parley);
  const { body } = await parley.handle(
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'query_class', arguments: { class_name: 'Order' } },
    },
    parley.agentFor({ agent: 'clerk', principal: 'check' }),
  );
  await app.close();
  await database.close();
  process.stdout.write(JSON.stringify(body));
}

void start();
