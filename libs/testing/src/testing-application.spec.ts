import { Injectable, Logger, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { AuditSink, Parley, ParleyModule, Tool, type ToolCall } from '@parley/server';
import { createTestingApplication, TestingDatabase, createTestingOver } from '@parley/testing';
import { INVOICES, InvoiceTools, SECRET } from './invoices.fixture.js';

const folder = mkdtempSync(join(tmpdir(), 'kit-spec-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function written(name: string, content: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}
const seedFile = written('seed.json', INVOICES.seed);

const sockets = () => readdirSync(tmpdir()).filter((name) => name.startsWith(`parley-${process.pid}-`));

describe('a testing application', () => {
  it('needs nothing but its name', async () => {
    await using app = await createTestingApplication();
    expect((await app.as('default').listTools()).map(({ name }) => name)).toContain('list_tools');
  });

  it('goes back to its seed: rows, roles, schema, records, and what people promised', async () => {
    await using app = await createTestingApplication({
      ...INVOICES,
      gates: 'open',
      policy: { unlistedClasses: 'allow' },
    });
    const admin = app.as({ permissions: 'admin', tenantId: 'acme' });
    const fields = { x: 'String' };
    await admin.call('create_class', { class_name: 'Fresh', fields });
    await admin.call('create_object', { class_name: 'Fresh', fields: { x: 'y' } });
    await admin.call('delete_object', { class_name: 'Invoice', object_id: 'i1' });
    await admin.call('update_object', { class_name: 'Invoice', object_id: 'i2', fields: { total: 1 } });
    admin.approve();
    const before = await app.matrix();
    expect(before.some((row) => row.class === 'Fresh')).toBe(true);
    await app.reset();
    expect(await app.ungoverned.find('Invoice')).toMatchObject([
      { total: 10 },
      { total: 20 },
      { total: 400 },
    ]);
    expect((await app.matrix()).some((row) => row.class === 'Fresh')).toBe(false);
    expect(await app.audit.records()).toEqual([]);
    expect(admin.unasked).toBe(0);
    await admin.expectRefused('invalid_argument', 'class', 'query_class', { class_name: 'Fresh' });
  });

  it('shows what was recorded, the oldest first', async () => {
    await using app = await createTestingApplication(INVOICES);
    expect(await app.audit.last()).toBeUndefined();
    await app.as('clerk').call('open_total');
    await app.as('guest').expectRefused('class_filter', 'class', 'count_objects', { class_name: 'Invoice' });
    expect(await app.audit.records()).toMatchObject([
      { tool: 'open_total', agent_name: 'clerk', success: true },
      { tool: 'count_objects', agent_name: 'guest', success: false, gate: 'class' },
    ]);
    expect(await app.audit.last()).toMatchObject({ tool: 'count_objects' });
  });

  it('reads rows past every rule when it is asked to', async () => {
    await using app = await createTestingApplication(INVOICES);
    expect(await app.ungoverned.get('Invoice', 'i1')).toMatchObject({ note: SECRET });
    expect(await app.ungoverned.get('Invoice', 'none')).toBeNull();
    expect(await app.ungoverned.count('Payroll')).toBe(1);
    expect(await app.ungoverned.find('Invoice', { org: 'globex' })).toHaveLength(1);
  });

  it('runs beside others, and knows nothing of their rows, records and agents', async () => {
    const [one, other] = await Promise.all([
      createTestingApplication(INVOICES),
      createTestingApplication({ agents: { solo: {} } }),
    ]);
    await one.as('clerk').call('open_total');
    expect(await other.audit.records()).toEqual([]);
    expect(() => other.as('clerk')).toThrow("no agent is named 'clerk'");
    expect(await other.ungoverned.count('Invoice')).toBe(0);
    await one.close();
    expect((await other.as('solo').call('get_all_schemas')).record.success).toBe(true);
    await other.close();
  });

  it('leaves nothing behind: no socket, no listener, no variable, no logger', async () => {
    const look = () => ({
      env: { ...process.env },
      listeners: process.eventNames().map((name) => [name, process.listenerCount(name)]),
      logger: (Logger as unknown as { staticInstanceRef: unknown }).staticInstanceRef,
      sockets: sockets(),
    });
    const before = look();
    const app = await createTestingApplication(INVOICES);
    expect(sockets().length).toBeGreaterThan(before.sockets.length);
    await app.as('clerk').explain('open_total');
    await app.close();
    await app.close();
    expect(look()).toEqual(before);
    await expect(createTestingApplication({ seed: { nonsense: 1 } })).rejects.toThrow('nonsense');
    await expect(
      createTestingApplication({ agents: { x: { permissions: 'god' as never } } }),
    ).rejects.toThrow('permissions');
    expect(look()).toEqual(before);
  });

  it('opens no gate because the environment does', async () => {
    const name = 'PARSE_AGENT_ALLOW_WRITE_TOOLS';
    const before = process.env[name];
    process.env[name] = 'true';
    try {
      await using app = await createTestingApplication(INVOICES);
      const change = { class_name: 'Invoice', object_id: 'i1', fields: { total: 1 } };
      const refusal = await app
        .as('writer')
        .expectRefused('access_denied', 'env_gates', 'update_object', change);
      expect(refusal.text).toContain(name);
    } finally {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    }
    await expect(
      createTestingApplication({ gates: { PARSE_AGENT_ALLOW_ALL: true } as never }),
    ).rejects.toThrow("no gate 'PARSE_AGENT_ALLOW_ALL'");
  });

  it('starts whatever the environment says of a service', async () => {
    const before = process.env['PARSE_MCP_ENABLED'];
    process.env['PARSE_MCP_ENABLED'] = 'false';
    try {
      await using app = await createTestingApplication(INVOICES);
      expect((await app.as('clerk').call('open_total')).data).toEqual({ total: 30 });
    } finally {
      if (before === undefined) delete process.env['PARSE_MCP_ENABLED'];
      else process.env['PARSE_MCP_ENABLED'] = before;
    }
  });

  it('says what is wrong with its options', async () => {
    const faulty = {
      agents: { clerk: { tools: { profile: 'no-such' } } },
      policy: { unlistedClasses: 'allow', classes: { X: { fields: 1 } } },
    };
    await expect(createTestingApplication(faulty as never)).rejects.toThrow(/policy\.classes\.X\.fields/);
    await expect(createTestingApplication({ seed: join(folder, 'missing.json') })).rejects.toThrow(
      'missing.json',
    );
    await expect(createTestingApplication({ seed: written('torn.json', '{') })).rejects.toThrow(
      'is not JSON',
    );
  });
});

describe('over a configuration file', () => {
  const file = {
    server: { host: '0.0.0.0', port: 1 },
    database: { uri: 'mongodb://db.invalid/x', seed: './seed.json' },
    redis: { url: 'redis://redis.invalid' },
    policy: INVOICES.policy,
    agents: {
      clerk: { tenantId: 'acme' },
      portal: { tenantId: 'acme' },
    },
    auth: [
      { apiKey: '${CLERK_KEY}', agent: 'clerk' },
      { parseSession: true, agent: 'portal' },
    ],
  };

  it('tests its policy and its agents over rows of its own', async () => {
    const config = written('parley.yaml', file);
    await using app = await createTestingApplication({
      config,
      env: { CLERK_KEY: 'key' },
      tools: [InvoiceTools],
    });
    expect((await app.as('clerk').call('open_total')).data).toEqual({ total: 30 });
    await app.as('clerk').expectRefused('hidden_class', 'class', 'query_class', { class_name: 'Payroll' });
  });

  it('never lets an agent read as more than the file does', async () => {
    const config = written('parley.yaml', file);
    await using app = await createTestingApplication({ config, env: { CLERK_KEY: 'key' } });
    expect(() => app.as('portal')).toThrow('reads with what callers show');
  });

  it('keeps agents in client mode that have no master key behind them', async () => {
    const parse = { serverUrl: 'http://parse.invalid', appId: 'app' };
    const agents = { portal: { identity: { session: 'caller' } } };
    const auth = [{ parseSession: true, agent: 'portal' }];
    const config = written('client.yaml', {
      ...file,
      parse,
      agents,
      auth,
      policy: { unlistedClasses: 'allow' },
    });
    await using app = await createTestingApplication({ config });
    const portal = app.as('portal', { session: 'r:of-ada' });
    await portal.expectRefused('access_denied', 'mode_ceiling', 'aggregate', { class_name: 'Invoice' });
  });

  it('reports the errors of the file, what it refers to and what does not exist', async () => {
    await expect(createTestingApplication({ config: written('parley.yaml', file) })).rejects.toThrow(
      'CLERK_KEY',
    );
    await expect(createTestingApplication({ config: join(folder, 'no.yaml') })).rejects.toThrow('no.yaml');
  });

  it('is refused with plugins nobody listed, whose rules would be missing', async () => {
    const plugin = `export default class P {}
      Reflect.defineMetadata('providers', [], P);`;
    written('plugin.mjs', plugin);
    const config = written('plugins.yaml', { ...file, auth: [], plugins: ['./plugin.mjs'] });
    await expect(createTestingApplication({ config })).rejects.toThrow('pluginsAreListed: true');
    await (await createTestingApplication({ config, pluginsAreListed: true })).close();
  });
});

@Injectable()
class Ledger {
  rate = 2;
}

@Injectable()
class LedgerTools {
  constructor(private readonly ledger: Ledger) {}

  @Tool({ name: 'doubled', description: 'By the ledger.' })
  async doubled(_: object, call: ToolCall) {
    return { doubled: this.ledger.rate * (await call.records.count('Invoice')) };
  }
}
Reflect.defineMetadata('design:paramtypes', [Ledger], LedgerTools);

@Module({ providers: [Ledger, LedgerTools], exports: [Ledger] })
class LedgerModule {}

describe('over a testing module of Nest', () => {
  it('asks the instance in it, with what the module overrides', async () => {
    const database = await TestingDatabase.start(seedFile);
    const { policy, agents } = INVOICES;
    const module = await Test.createTestingModule({
      imports: [
        ParleyModule.forRoot({ name: 'books', database: { uri: database.uri }, policy, agents }),
        LedgerModule,
      ],
    })
      .overrideProvider(Ledger)
      .useValue({ rate: 50 })
      .compile();
    await module.init();
    await using app = createTestingOver(module, { instance: 'books', database });
    expect((await app.as('clerk').call('doubled')).data).toEqual({ doubled: 100 });
    expect(app.get(Ledger).rate).toBe(50);
    await app.reset();
    expect(await app.ungoverned.count('Invoice')).toBe(3);
  });

  const startWith = async (value: unknown) => {
    const module = await Test.createTestingModule({
      imports: [ParleyModule.forRoot({ name: 'books', agents: { clerk: {} } }), LedgerModule],
    })
      .overrideProvider(LedgerTools)
      .useValue(value)
      .compile();
    await module.init();
    return createTestingOver(module, { instance: 'books' });
  };

  it.each<[string, () => unknown]>([
    ['a plain object', () => ({ doubled: () => 1 })],
    [
      'an instance of a class without the decorators',
      () =>
        new (class extends LedgerTools {
          override doubled() {
            return Promise.resolve({ doubled: 1 });
          }
        })(new Ledger()),
    ],
    [
      'an instance with a method of its own',
      () => Object.assign(new LedgerTools(new Ledger()), { doubled: () => 1 }),
    ],
  ])('refuses %s in the place of a tool class, which would lose its guards', async (_, stand) => {
    await expect(startWith(stand())).rejects.toThrow(/LedgerTools is replaced by .* lacks .*doubled\(\)/);
  });

  it('serves an instance in the place of a tool class, and nothing in the place of null', async () => {
    await using served = await startWith(new LedgerTools(new Ledger()));
    await expect(served.as('clerk').call('doubled')).rejects.toThrow("fetch schema for 'Invoice'");
    await using none = await startWith(null);
    await expect(none.as('clerk').call('doubled')).rejects.toThrow('Unknown tool: doubled');
  });

  it('puts no rows back that are not its own', async () => {
    const module = await Test.createTestingModule({
      imports: [ParleyModule.forRoot({ agents: { clerk: {} } })],
    }).compile();
    await module.init();
    await using app = createTestingOver(module);
    expect(app.parley).toBe(module.get(Parley));
    await expect(app.reset()).rejects.toThrow('give the TestingDatabase');
    expect(() => app.ungoverned.find('Invoice')).toThrow('give the TestingDatabase');
  });

  it('says nothing of gates where the application keeps records for itself', async () => {
    class Elsewhere extends AuditSink {
      record(): void {}
    }
    const overrides = [{ provide: AuditSink, useClass: Elsewhere }];
    await using app = await createTestingApplication({ ...INVOICES, seams: overrides });
    const refused = app
      .as('clerk')
      .expectRefused('hidden_class', 'class', 'query_class', { class_name: 'Payroll' });
    await expect(refused).rejects.toThrow('does the application bind AuditSink?');
  });
});
