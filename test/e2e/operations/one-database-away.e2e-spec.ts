import { MongoClient, ObjectId } from 'mongodb';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import {
  callTool,
  type Database,
  listLogged,
  type Service,
  startDatabase,
  startService,
  type ToolAnswer,
} from '../../support/service.js';

/* Three databases in processes of their own, and callers that never stop asking while one of them goes and comes back. */

const SOON = { timeout: 60_000, interval: 50 };
const text = { type: 'String' };
const open = { '*': true };
const SEED = {
  schemas: [
    {
      className: 'Order',
      fields: { number: text, customer: { type: 'Pointer', targetClass: 'Customer' } },
      classLevelPermissions: { find: open, get: open, count: open, create: open, update: open },
    },
  ],
  objects: { Order: [{ objectId: 'o1', number: 'A1' }] },
};
const ada = new ObjectId();
const free = { permissions: 'admin', rateLimit: 1_000_000 };

let shop: Database;
let crm: Database;
let app: Database;
let service: Service;

const fillCrm = async () => {
  const client = new MongoClient(crm.uriOf('crm'));
  await client.db().collection('customers').insertOne({ _id: ada, name: 'Ada' });
  await client.close();
};
const fillApp = async () => {
  const client = new MongoClient(app.uri);
  for (const tenant of ['acme', 'globex'])
    await client
      .db(`t_${tenant}`)
      .collection('tickets')
      .insertOne({ text: `of ${tenant}` });
  await client.close();
};

beforeAll(async () => {
  [shop, crm, app] = await Promise.all([startDatabase(SEED), startDatabase({}), startDatabase({})]);
  await Promise.all([fillCrm(), fillApp()]);
  service = await startService({
    config: {
      databases: {
        shop: { uri: shop.uri, name: 'parley' },
        crm: { uri: crm.uriOf('crm'), storage: 'plain', required: false },
        app: { uri: app.uri, storage: 'plain', name: 't_{tenant}' },
      },
      agents: { acme: { ...free, tenantId: 'acme' }, globex: { ...free, tenantId: 'globex' } },
      auth: ['acme', 'globex'].map((agent) => ({ apiKey: agent, agent })),
      policy: {
        classes: {
          Order: {},
          Customer: { database: 'crm', collection: 'customers', properties: { name: text } },
          Ticket: { database: 'app', collection: 'tickets', properties: { text } },
        },
      },
    },
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
}, 120_000);

type Place = 'shop' | 'crm' | 'app';
interface Work {
  readonly place: Place;
  readonly ask: (turn: number) => Promise<ToolAnswer>;
}
const call = (tool: string, args: object, agent = 'acme') =>
  callTool(service, tool, args, { 'X-MCP-API-Key': agent });
const create = (class_name: string, fields: object, turn: number) =>
  call('create_object', { class_name, fields, idempotency_key: `${class_name}-${turn}` });
const WORKS: readonly Work[] = [
  { place: 'shop', ask: () => call('query_class', { class_name: 'Order' }) },
  { place: 'shop', ask: (turn) => create('Order', { number: `made ${turn}` }, turn) },
  { place: 'shop', ask: () => call('get_all_schemas', {}, 'globex') },
  { place: 'crm', ask: () => call('query_class', { class_name: 'Customer' }) },
  { place: 'crm', ask: (turn) => create('Customer', { name: `made ${turn}` }, turn) },
  { place: 'crm', ask: () => call('export_data', { class_name: 'Customer' }, 'globex') },
  { place: 'app', ask: () => call('query_class', { class_name: 'Ticket' }) },
  { place: 'app', ask: () => call('count_objects', { class_name: 'Ticket' }, 'globex') },
  { place: 'app', ask: (turn) => create('Ticket', { text: `made ${turn}` }, turn) },
];

/** Keys of writes. */
let turns = 0;

/** Asks for everything without a pause until it is ended. */
class Load {
  private readonly answers: { readonly place: Place; readonly answer: ToolAnswer }[] = [];
  private isOver = false;
  private readonly running = WORKS.map((work) => this.repeat(work));

  private async repeat({ place, ask }: Work): Promise<void> {
    while (!this.isOver) this.answers.push({ place, answer: await ask((turns += 1)) });
  }

  of(place: Place, from = 0): readonly ToolAnswer[] {
    return this.answers.slice(from).flatMap((one) => (one.place === place ? [one.answer] : []));
  }

  get count(): number {
    return this.answers.length;
  }

  async end(): Promise<void> {
    this.isOver = true;
    await Promise.all(this.running);
  }
}
const ready = async () => {
  const response = await fetch(`${service.origin}/ready`);
  const { dependencies } = (await response.json()) as { dependencies: Record<string, string> };
  return [response.status, dependencies];
};
const failures = (answers: readonly ToolAnswer[]) => answers.filter(({ isError }) => isError);
const others = (gone: Place) => (['shop', 'crm', 'app'] as const).filter((place) => place !== gone);
/** Of a write that was under way when its database went. */
const UNCERTAIN = { outcome: 'unknown' };
/** Answers of a place that have to come, one after another. */
const ENOUGH = 30;

const restart: Readonly<Record<'crm' | 'app', (port: number) => Promise<void>>> = {
  crm: async (port) => {
    crm = await startDatabase({}, port);
    await fillCrm();
  },
  app: async (port) => {
    app = await startDatabase({}, port);
    await fillApp();
  },
};

describe('one database of several that goes under load', () => {
  it.each([
    ['crm', 200],
    ['app', 503],
  ] as const)(
    'has calls of its classes refused, and no other: %s, with which the service is ready by %i',
    async (gone, status) => {
      const load = new Load();
      const database = { crm, app }[gone];
      const port = Number(new URL(database.uri).port);
      try {
        await vi.waitFor(() => {
          for (const { place } of WORKS) expect(load.of(place).length).toBeGreaterThan(ENOUGH);
        }, SOON);
        expect(
          load
            .of('shop')
            .concat(load.of('crm'), load.of('app'))
            .filter(({ isError }) => isError),
        ).toEqual([]);
        await database.stop();
        const began = load.count;
        await vi.waitFor(() => expect(failures(load.of(gone, began)).length).toBeGreaterThan(5), SOON);
        const refusing = load.count;
        await vi.waitFor(() => {
          for (const place of others(gone)) expect(load.of(place, refusing).length).toBeGreaterThan(ENOUGH);
        }, SOON);
        await vi.waitFor(
          async () =>
            expect(await ready()).toEqual([
              status,
              { mongodb: 'up', 'mongodb.crm': 'up', 'mongodb.app': 'up', [`mongodb.${gone}`]: 'down' },
            ]),
          SOON,
        );

        await restart[gone](port);
        await vi.waitFor(async () => {
          const before = load.count;
          await vi.waitFor(() => expect(load.of(gone, before).length).toBeGreaterThan(ENOUGH), SOON);
          expect(failures(load.of(gone, before))).toEqual([]);
        }, SOON);
        await vi.waitFor(async () => expect((await ready())[0]).toBe(200), SOON);
      } finally {
        await load.end();
      }
      for (const place of others(gone)) expect([place, failures(load.of(place))]).toEqual([place, []]);
      for (const { code, wire, details } of failures(load.of(gone))) {
        expect([code, details ?? null]).toEqual(['parse_error', expect.toBeOneOf([null, UNCERTAIN])]);
        expect(wire).not.toMatch(/127\.0\.0\.1|localhost|mongodb|Mongo\w*Error|ECONN|t_acme/);
      }
      expect(service.isRunning()).toBe(true);
    },
    180_000,
  );

  it('has calls of its classes wait, and no other, while it hangs', async () => {
    const load = new Load();
    try {
      await vi.waitFor(() => expect(load.of('crm').length).toBeGreaterThan(ENOUGH), SOON);
      crm.pause();
      const began = load.count;
      await vi.waitFor(() => {
        for (const place of others('crm')) expect(load.of(place, began).length).toBeGreaterThan(5 * ENOUGH);
      }, SOON);
      expect(await ready()).toMatchObject([200, { 'mongodb.crm': 'down' }]);
      crm.resume();
      await vi.waitFor(async () => {
        const before = load.count;
        await vi.waitFor(() => expect(load.of('crm', before).length).toBeGreaterThan(ENOUGH), SOON);
        expect(failures(load.of('crm', before))).toEqual([]);
      }, SOON);
    } finally {
      crm.resume();
      await load.end();
    }
    for (const place of others('crm')) expect([place, failures(load.of(place))]).toEqual([place, []]);
  }, 180_000);

  it('is named in the records of the calls that were refused', () => {
    const refused = listLogged(service, 'call').filter(({ code }) => code === 'parse_error');
    expect(refused.length).toBeGreaterThan(0);
    expect(new Set(refused.map(({ database }) => database))).toEqual(new Set(['crm', 'app']));
  });
});
