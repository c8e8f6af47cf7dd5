import 'reflect-metadata';
import { getConnectionToken, MongooseModule } from '@nestjs/mongoose';
import { Test } from '@nestjs/testing';
import mongoose, { type Connection, Schema } from 'mongoose';
import { beforeAll, describe, expect, it } from 'vitest';
import { ConfigError, Parley, ParleyModule, type ParleyModuleOptions } from '@parley/server';
import { declareClasses } from '@parley/server/mongoose';
import { type Database, startDatabase } from '../../support/service.js';

let cluster: Database;
beforeAll(async () => {
  cluster = await startDatabase({ schemas: [] });
});

const order = new Schema({ number: String, customer: { type: Schema.Types.ObjectId } });
const customer = new Schema({ name: String, email: String });
const ticket = new Schema({ text: String });

const open = async (name: string): Promise<Connection> =>
  mongoose.createConnection(cluster.uriOf(name)).asPromise();

async function call(parley: Parley, tool: string, args: object, tenantId?: string): Promise<string> {
  const { body } = await parley.handle(
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: args } },
    parley.agentFor({ agent: 'desk', principal: 'test', ...(tenantId !== undefined && { tenantId }) }),
  );
  return JSON.stringify(body);
}

describe('a Nest application with several Mongoose connections', () => {
  it('has the classes of each, by databases.NAME.connection', async () => {
    const [shop, crm] = [await open('shop'), await open('crm')];
    const id = (await crm.model('Customer', customer).create({ name: 'Ada', email: 'ada@example.com' }))._id;
    await shop.model('Order', order).create({ number: 'A1', customer: id });
    for (const tenant of ['acme', 'globex'])
      await crm
        .useDb(`t_${tenant}`)
        .model('Ticket', ticket)
        .create({ text: `SECRET-${tenant}` });
    const options = (main: Connection, other: Connection): ParleyModuleOptions => ({
      databases: {
        shop: { connection: main },
        crm: { connection: other, readOnly: true },
        app: { connection: other, name: 't_{tenant}', storage: 'plain' },
      },
      classes: [
        ...declareClasses([main.models['Order'] ?? main.model('Order', order)]),
        ...declareClasses([other.models['Customer'] ?? other.model('Customer', customer)], {
          database: 'crm',
        }),
      ],
      policy: {
        classes: {
          Order: { properties: { customer: { type: 'Pointer', targetClass: 'Customer' } } },
          Customer: { masks: { email: 'mask' } },
          Ticket: { database: 'app', collection: 'tickets' },
        },
      },
      agents: { desk: { permissions: 'admin' } },
    });
    const app = await Test.createTestingModule({
      imports: [
        MongooseModule.forRoot(cluster.uriOf('shop')),
        MongooseModule.forRoot(cluster.uriOf('crm'), { connectionName: 'crm' }),
        ParleyModule.forRootAsync({
          inject: [getConnectionToken(), getConnectionToken('crm')],
          useFactory: options,
        }),
      ],
    }).compile();
    app.useLogger(false);
    await app.init();
    const parley = app.get(Parley);
    const orders = await call(parley, 'query_class', { class_name: 'Order', include: ['customer'] });
    expect(orders).toContain('A1');
    expect(orders).toContain('Ada');
    expect(orders).not.toContain('ada@example.com');
    expect(await call(parley, 'count_objects', { class_name: 'Customer' })).toContain('"count":1');
    const acme = await call(parley, 'query_class', { class_name: 'Ticket' }, 'acme');
    expect([acme.includes('SECRET-acme'), acme.includes('globex')]).toEqual([true, false]);
    expect(await call(parley, 'query_class', { class_name: 'Ticket' })).toContain('tenant_scope');
    await app.close();
    // They are the application's.
    expect(shop.readyState).toBe(1);
    expect(await crm.collection('customers').countDocuments()).toBe(1);
    await Promise.all([shop.close(), crm.close()]);
  });

  it.each<[string, object, string]>([
    ['what is no connection', { crm: { connection: {} } }, 'databases.crm.connection'],
    ['a connection that is undefined', { crm: { connection: undefined } }, 'databases.crm.connection'],
    [
      'an address beside a connection',
      { crm: { connection: 'open', uri: 'mongodb://127.0.0.1:1/x' } },
      'databases.crm.uri',
    ],
  ])('refuses %s', async (_, entries, path) => {
    const connection = await open('crm');
    const databases = Object.fromEntries(
      Object.entries(entries).map(([name, entry]) => [
        name,
        {
          ...(entry as object),
          ...((entry as { connection: unknown }).connection === 'open' && { connection }),
        },
      ]),
    );
    const options = { databases: { shop: { uri: 'embedded' }, ...databases }, policy: { classes: {} } };
    const compiling = Test.createTestingModule({
      imports: [ParleyModule.forRoot(options as ParleyModuleOptions)],
    }).compile();
    const error = await compiling.then(
      (app) => app.close(),
      (reason: unknown) => reason,
    );
    expect(error instanceof ConfigError ? error.issues.map((issue) => issue.path) : error).toContain(path);
    await connection.close();
  });
});
