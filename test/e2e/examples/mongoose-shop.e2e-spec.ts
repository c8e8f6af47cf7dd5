import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import mongoose, { Schema } from 'mongoose';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedDatabase } from '@parley/server';
import { decideApproval } from '../../support/decide-approval.js';
import { callTool, rpc } from '../../support/service.js';
import { type Example, followPage, followReadme, startExample } from './example-process.js';

const SOON = { timeout: 60_000, interval: 50 };
const as = (name: string) => ({ Authorization: `Bearer ${name}-in-development` });

/** What the schemas do not select, and what the other shop has. */
const HIDDEN = /secret|0\.31|margin":|passwordHash":|street":|Kim|S-1|1234567890/;

describe('a database that Mongoose wrote, served by the service', () => {
  it('is answered from as the page on plain collections says', async () => {
    const database = await EmbeddedDatabase.start({ name: 'shop' });
    const named = new URL(database.uri);
    named.pathname = '/shop';
    const uri = named.href;
    const connection = await mongoose.createConnection(uri).asPromise();
    const orders = connection.model('Order', new Schema({ number: String }));
    await orders.create([1, 2, 3, 4].map((number) => ({ number: `N-${number}` })));
    const command = `'${process.execPath}' '${fileURLToPath(new URL('../../../tools/parley.mjs', import.meta.url))}'`;
    const shown = await followPage(
      'docs/guide/plain-mongodb.md',
      { 'npx parley': command, 'mongodb://127.0.0.1/shop': uri },
      {},
      (page) => page.split('## As a service')[1] ?? '',
    );
    await connection.close();
    await database.close();
    expect(shown.length).toBeGreaterThan(3);
    expect(shown.map(({ actual }) => actual)).toEqual(shown.map(({ documented }) => documented));
  });
});

describe('the example mongoose-shop', () => {
  let example: Example;
  beforeAll(async () => {
    example = await startExample('mongoose-shop');
  });
  afterAll(() => example.stop());

  const mcp = () => ({ url: `${example.origin}/mcp` });
  const ask = async (tool: string, args: object, who = 'bob') => {
    const answer = await callTool(mcp(), tool, args, as(who));
    if (who === 'bob') expect(answer.wire).not.toMatch(HIDDEN);
    return answer;
  };
  const idOf = async (number: string): Promise<string> => {
    const { data } = await ask('query_class', { class_name: 'Order', where: { number } });
    return (data['results'] as { objectId: string }[])[0]?.objectId ?? '';
  };
  const desk = () => `${example.origin}/mcp/approvals`;
  const waiting = async () => (await fetch(desk(), { headers: as('ada') })).text();
  const decided = async (decision: 'approve' | 'deny') => {
    let id = '';
    await expect
      .poll(async () => (id = /"id":"([^"]+)"/.exec(await waiting())?.[1] ?? ''), SOON)
      .not.toBe('');
    for (const [who, status] of [
      ['bob', 403],
      ['ada', 200],
    ] as const)
      expect((await decideApproval(`${desk()}/${id}`, as(who), { decision })).status).toBe(status);
  };

  it('does what its README says', async () => {
    const shown = await followReadme('mongoose-shop', { 'http://127.0.0.1:3000': example.origin });
    expect(shown.length).toBeGreaterThan(6);
    expect(shown.map(({ actual }) => actual)).toEqual(shown.map(({ documented }) => documented));
  });

  it('answers as the page on plain collections says', async () => {
    const replaced = { 'http://127.0.0.1:3000': example.origin };
    const firstPart = (page: string) => page.split('## As a service')[0] ?? '';
    const shown = await followPage('docs/guide/plain-mongodb.md', replaced, {}, firstPart);
    expect(shown).toHaveLength(3);
    expect(shown.map(({ actual }) => actual)).toEqual(shown.map(({ documented }) => documented));
  });

  it('admits nobody whom its own guard does not know', async () => {
    for (const headers of [{}, { Authorization: 'Bearer eve-in-development' }] as Record<string, string>[]) {
      expect((await fetch(`${example.origin}/orders`, { headers })).status).toBe(401);
      expect((await rpc(mcp(), 'tools/list', {}, headers)).status).toBe(401);
    }
  });

  it('shows agents the listed models alone, and no column that the models do not select', async () => {
    const { data } = await ask('get_all_schemas', {});
    expect((data['custom'] as { name: string }[]).map(({ name }) => name)).toEqual(['Customer', 'Order']);
    for (const class_name of ['Customer', 'Order']) {
      await ask('get_schema', { class_name });
      await ask('query_class', { class_name });
      await ask('export_data', { class_name });
      await ask('get_sample_objects', { class_name });
      await ask('aggregate', { class_name, pipeline: [{ $sort: { createdAt: 1 } }] });
    }
    for (const where of [{ margin: 0.31 }, { passwordHash: { $exists: true } }, { 'address.street': 'x' }])
      for (const class_name of ['Customer', 'Order'])
        expect((await ask('query_class', { class_name, where })).isError).toBe(true);
    for (const class_name of ['customers', 'orders', 'system.users', '_SCHEMA'])
      expect((await ask('query_class', { class_name })).isError).toBe(true);
  });

  it('joins by references, groups and exports with exact amounts', async () => {
    const joined = await ask('aggregate', {
      class_name: 'Order',
      pipeline: [
        { $lookup: { from: 'Customer', localField: 'customer', foreignField: 'objectId', as: 'buyer' } },
        { $unwind: '$buyer' },
        { $group: { _id: '$buyer.name', total: { $sum: '$total' } } },
        { $sort: { _id: 1 } },
      ],
    });
    expect(joined.data['results']).toEqual([
      { _id: 'Ines', total: '1200.40' },
      { _id: 'Jo', total: '99.95' },
    ]);
    const south = await ask('query_class', { class_name: 'Order' }, 'cid');
    expect(south.wire).toContain('12345678901234567890.12');
    const exported = await ask('export_data', { class_name: 'Order', columns: ['number', 'total'] });
    expect(String(exported.data['output'])).toContain('N-2,0.30');
  });

  it('writes what a manager approved, in the types of the model, and nothing else', async () => {
    const object_id = await idOf('N-3');
    const fields = { status: 'shipped', total: '100.00' };
    const approved = ask('update_object', { class_name: 'Order', object_id, fields });
    await decided('approve');
    expect(await approved).toMatchObject({ isError: false });
    expect((await ask('get_object', { class_name: 'Order', object_id })).data['object']).toMatchObject(
      fields,
    );
    const denied = ask('update_object', { class_name: 'Order', object_id, fields: { status: 'open' } });
    await decided('deny');
    expect(await denied).toMatchObject({ isError: true, code: 'approval_denied' });
    const open = await fetch(`${example.origin}/orders`, { headers: as('bob') });
    expect(await open.json()).toEqual([{ number: 'N-1', total: '1200.10' }]);
  });

  it('notifies an agent of what the application writes with Mongoose', async () => {
    const client = new Client({ name: 'scenario', version: '1.0.0' });
    const changed: string[] = [];
    client.setNotificationHandler(
      ResourceUpdatedNotificationSchema,
      ({ params }) => void changed.push(params.uri),
    );
    const transport = new StreamableHTTPClientTransport(new URL(mcp().url), {
      requestInit: { headers: as('bob') },
    });
    await client.connect(transport as never);
    await client.subscribeResource({ uri: 'parse://Order/samples' });
    const pay = (number: string, who: string) =>
      fetch(`${example.origin}/orders/${number}/paid`, { method: 'POST', headers: as(who) });
    await expect
      .poll(async () => {
        expect((await pay('N-1', 'bob')).status).toBe(201);
        return changed;
      }, SOON)
      .toContain('parse://Order/samples');
    await client.close();
  });

  it('ends when the application does, with the connection of Mongoose', async () => {
    await example.stop();
    expect(example.output()).not.toMatch(/ ERROR |Unhandled/);
  });
});
