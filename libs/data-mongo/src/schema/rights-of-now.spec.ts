import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Agent, compileAgentDefinition, type Identity, Refused, McpRequest } from '#core';
import {
  CachedPrincipalDirectory,
  GovernedRecordsSource,
  GovernedViews,
  GovernedWritesSource,
  PrincipalResolver,
} from '#data';
import { PATIENT } from '#data/contracts';
import { AgentScopes, compilePolicy, Policies } from '#policy';
import { MongoPrincipalDirectory } from '../identity/mongo-principal-directory.js';
import { TestDatabase } from '../test-database.contract.js';

const OPEN = { find: { '*': true }, get: { '*': true }, count: { '*': true }, create: { '*': true } };
const SEED = {
  schemas: [{ className: 'Card', fields: { title: { type: 'String' } }, classLevelPermissions: OPEN }],
  users: [{ objectId: 'ada', username: 'ada' }],
  roles: [{ objectId: 'staffrole', name: 'staff', users: ['ada'], ACL: {} }],
  objects: {
    Card: [
      { objectId: 'c1', title: 'open' },
      { objectId: 'c2', title: 'of staff', ACL: { 'role:staff': { read: true } } },
    ],
  },
};
const BUDGET = { tool: 'test', timeout: 30 };

/** Time passes for every age; the driver and its timers do not notice. */
let passed = 0;
const pass = (milliseconds: number) => (passed += milliseconds);

describe('governed access on classes that change', PATIENT, () => {
  let database: TestDatabase;
  let store: Awaited<ReturnType<TestDatabase['open']>>;
  let source: GovernedRecordsSource;
  let writes: GovernedWritesSource;
  let commands: string[];
  beforeAll(async () => {
    database = await TestDatabase.start();
  });
  afterAll(() => database.stop());
  beforeEach(async () => {
    passed = 0;
    const now = Date.now.bind(Date);
    vi.spyOn(Date, 'now').mockImplementation(() => now() + passed);
    store = await database.openMonitored(SEED);
    const directory = new CachedPrincipalDirectory(new MongoPrincipalDirectory(store.connection));
    source = new GovernedRecordsSource(
      new AgentScopes(new Policies(compilePolicy({ unlistedClasses: 'allow' }).policy)),
      store.reader,
      store.catalogue,
      new PrincipalResolver(directory),
    );
    writes = new GovernedWritesSource(source, store.writer, store.schemaWriter);
    commands = [];
    store.connection.db.client.on('commandStarted', ({ commandName, command }) =>
      commands.push(`${commandName} ${String(command[commandName])}`),
    );
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await store.close();
  });

  const definition = compileAgentDefinition('reader', { permissions: 'admin' });
  const createContext = (identity: Identity) =>
    new McpRequest(new Agent({ definition, identity, principal: 'somebody' }));
  const ADA: Identity = { kind: 'aclUser', userId: 'ada' };
  const MASTER: Identity = { kind: 'master' };
  const readsOfClasses = () => commands.filter((command) => command === 'find _SCHEMA').length;
  const change = (update: object) =>
    store.connection.collection('_SCHEMA').updateOne({ _id: 'Card' }, update);
  const addClass = () =>
    store.connection.collection('_SCHEMA').insertOne({ _id: 'Later', objectId: 'string', title: 'string' });
  const findCode = (work: Promise<unknown>) =>
    work.then(
      () => 'answered',
      (error: unknown) => (error instanceof Refused ? error.refusal.code : error),
    );

  it('reads with the permissions of now in a call that goes on', async () => {
    const records = source.for(createContext(ADA), BUDGET);
    expect(await records.count('Card')).toBe(2);
    await change({ $set: { '_metadata.class_permissions.count': {} } });
    pass(31_000);
    expect(await findCode(records.count('Card'))).toBe('access_denied');
  });

  it('reads with the roles of now in a call that goes on', async () => {
    const records = source.for(createContext(ADA), BUDGET);
    expect(await records.count('Card')).toBe(2);
    await store.connection.collection('_Join:users:_Role').deleteMany({});
    pass(31_000);
    expect(await records.count('Card')).toBe(1);
  });

  it('writes with the permissions of now after a long wait, as for an approval', async () => {
    const access = writes.rows(createContext(ADA), BUDGET);
    await access.judge({ operation: 'create', className: 'Card', fields: { title: 'new' } });
    await change({ $set: { '_metadata.class_permissions.create': {} } });
    pass(600_000);
    expect(await findCode(access.create('Card', { title: 'new' }))).toBe('access_denied');
    expect(await source.for(createContext(MASTER), BUDGET).count('Card')).toBe(2);
  });

  it('watches with the permissions of now', async () => {
    const views = new GovernedViews(source);
    await views.open(createContext(ADA), 'Card', 'find');
    await change({ $set: { '_metadata.class_permissions.find': {} } });
    pass(31_000);
    expect(await findCode(views.open(createContext(ADA), 'Card', 'find'))).toBe('access_denied');
  });

  it('finds a class for a read, a write and a subscription that is younger than its snapshot', async () => {
    const asks = [
      () => source.for(createContext(MASTER), BUDGET).count('Later'),
      () => writes.rows(createContext(MASTER), BUDGET).create('Later', { title: 'first' }),
      () => new GovernedViews(source).open(createContext(MASTER), 'Later', 'count'),
    ];
    for (const ask of asks) {
      await source.for(createContext(MASTER), BUDGET).count('Card');
      await addClass();
      expect(await findCode(ask())).toBe('answered');
      expect(await store.connection.collection('Later').countDocuments()).toBeLessThanOrEqual(1);
      await store.connection.collection('Later').deleteMany({});
      await store.connection.collection('_SCHEMA').deleteMany({ _id: 'Later' });
      pass(31_000);
    }
  });

  it('reads the classes at most once a second for names that callers invent', async () => {
    const records = () => source.for(createContext(MASTER), BUDGET);
    await records().count('Card');
    commands.length = 0;
    const began = performance.now();
    await Promise.all(
      Array.from({ length: 50 }, async (_, at) => {
        expect(await findCode(records().count(`Invented${at}`))).toBe('invalid_argument');
        expect(await records().count('Card', { where: { [`invented${at}`]: 1 } })).toBe(0);
      }),
    );
    for (let at = 50; at < 100; at += 1) await findCode(records().count(`Invented${at}`));
    const seconds = (performance.now() - began) / 1000;
    expect(readsOfClasses()).toBeGreaterThan(0);
    expect(readsOfClasses()).toBeLessThanOrEqual(1 + seconds);
  });

  it('reads the classes no more for names that are known', async () => {
    const records = () => source.for(createContext(MASTER), BUDGET);
    for (let at = 0; at < 20; at += 1)
      await records().find('Card', { where: { title: 'open' }, keys: ['title'], order: '-createdAt' });
    expect(readsOfClasses()).toBe(1);
  });
});
