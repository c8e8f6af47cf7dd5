import 'reflect-metadata';
import { type INestApplication, Injectable, type InjectionToken, type Provider } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  AGENT_FACTORY,
  Approver,
  AuditSink,
  Authenticator,
  Parley,
  ParleyModule,
  type ParleyModuleOptions,
  PrincipalDirectory,
  RateLimiters,
  RecordReader,
  RecordSearcher,
  RecordWriter,
  SchemaCatalogue,
  SharedState,
  TaskQueue,
  Tool,
  type ToolCall,
} from '@parley/server';
import { asked, BINDINGS } from '../../fixtures/overridable-providers.fixture.js';
import { callModern } from '../../support/modern-call.js';
import { POSTS_SEED, POSTS_POLICY, SECRET } from '../../fixtures/posts.fixture.js';
import { callTool, rpc, startDatabase } from '../../support/service.js';

const posts = await startDatabase(POSTS_SEED);

const TOKENS = {
  Authenticator,
  AuditSink,
  Approver,
  RateLimiters,
  RecordReader,
  RecordWriter,
  RecordSearcher,
  SchemaCatalogue,
  PrincipalDirectory,
  TaskQueue,
  SharedState,
} satisfies Record<keyof typeof BINDINGS, InjectionToken>;

const OPTIONS: ParleyModuleOptions = {
  database: { uri: posts.uri },
  policy: { ...POSTS_POLICY, requireApprovalFor: ['admin'] },
  server: { drainTimeout: 1 },
  gates: {
    PARSE_AGENT_ALLOW_WRITE_TOOLS: true,
    PARSE_AGENT_ALLOW_SCHEMA_OPS: false,
    PARSE_AGENT_ALLOW_RAW_CRUD: true,
    PARSE_AGENT_ALLOW_RAW_SCHEMA: false,
  },
  agents: {
    desk: { permissions: 'readonly', tenantId: 'acme' },
    editor: { permissions: 'admin', tenantId: 'acme' },
    signedIn: { permissions: 'readonly', tenantId: 'acme', clientMode: false },
  },
};

@Injectable()
class DeskTools {
  @Tool({
    name: 'asks_first',
    description: 'Needs a yes.',
    permission: 'admin',
    input: { type: 'object', properties: { say: { type: 'string' } } },
  })
  asksFirst() {
    return { done: true };
  }

  @Tool({ name: 'goes_on', description: 'Always a task.', task: 'required' })
  goesOn(_: object, call: ToolCall) {
    return { agent: call.agent.definition.name };
  }
}

/** An application with these bindings, bound in one of the two ways there are. */
async function started(
  bindings: readonly Exclude<Provider, Function>[],
  way: 'providers' | 'overrideProvider' = 'providers',
  options: ParleyModuleOptions = OPTIONS,
): Promise<INestApplication> {
  const providers = way === 'providers' ? bindings : [];
  const builder = Test.createTestingModule({
    imports: [ParleyModule.forRoot({ ...options, providers })],
    providers: [DeskTools],
  });
  if (way === 'overrideProvider')
    for (const { provide, ...given } of bindings as {
      provide: unknown;
      useFactory?: never;
      useValue?: never;
    }[]) {
      if (given.useFactory) builder.overrideProvider(provide).useFactory({ factory: given.useFactory });
      else builder.overrideProvider(provide).useValue(given.useValue);
    }
  const app = (await builder.compile()).createNestApplication(new ExpressAdapter(), { logger: false });
  await app.listen(0, '127.0.0.1');
  return app;
}

/** What is noted of a binding that stands for several things. */
const NOTES = new Map([
  ['TaskQueue', 'TaskQueue.push'],
  ['SharedState', 'SharedState.exports.create'],
]);

const as = (user: string, session?: string) => ({
  'X-User': user,
  ...(session !== undefined && { 'X-Session': session }),
});

describe.each(['providers', 'overrideProvider'] as const)(
  'overridable providers that are bound by %s',
  (way) => {
    let app: INestApplication;
    let at: { url: string };

    beforeAll(async () => {
      const bindings = Object.entries(TOKENS).map(([name, provide]) => ({
        provide,
        useFactory: BINDINGS[name as keyof typeof BINDINGS],
      }));
      app = await started(bindings, way);
      at = { url: `${await app.getUrl()}/mcp` };
    });
    afterAll(() => app.close());
    beforeEach(() => void asked.splice(0));

    const find = { class_name: 'Post' };
    const CALLS: readonly (readonly [keyof typeof TOKENS, string, () => Promise<unknown>])[] = [
      ['Authenticator', 'who is calling', () => rpc(at, 'tools/list', {}, as('desk'))],
      ['AuditSink', 'what becomes of a call', () => callTool(at, 'query_class', find, as('desk'))],
      ['Approver', 'a call that needs a yes', () => callTool(at, 'asks_first', {}, as('editor'))],
      ['RateLimiters', 'another call', () => callTool(at, 'query_class', find, as('desk'))],
      ['RecordReader', 'rows', () => callTool(at, 'query_class', find, as('desk'))],
      [
        'RecordWriter',
        'a new row',
        () => callTool(at, 'create_object', { class_name: 'Author', fields: { name: 'Eve' } }, as('editor')),
      ],
      [
        'RecordSearcher',
        'words',
        () =>
          callTool(
            at,
            'atlas_text_search',
            { class_name: 'Post', query: 'of', fields: ['title'] },
            as('desk'),
          ),
      ],
      ['SchemaCatalogue', 'classes', () => callTool(at, 'get_all_schemas', {}, as('desk'))],
      ['PrincipalDirectory', 'a session', () => callTool(at, 'query_class', find, as('signedIn', 'r:good'))],
      [
        'TaskQueue',
        'a task',
        () =>
          callModern(
            at,
            'goes_on',
            {},
            {
              headers: as('desk'),
              capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } },
            },
          ),
      ],
      [
        'SharedState',
        'what was promised',
        () => callTool(at, 'export_data', { ...find, delivery: 'resource' }, as('desk')),
      ],
    ];

    it('are every one that there is', () => {
      expect(CALLS.map(([name]) => name)).toEqual(Object.keys(TOKENS));
    });

    it.each(CALLS)('%s is asked about %s', async (name, _, call) => {
      await call();
      await vi.waitFor(() => expect(asked).toContain(NOTES.get(name) ?? name));
    });

    it('AGENT_FACTORY is asked who a request runs as', async () => {
      const chooser = { provide: AGENT_FACTORY, useValue: () => ({ agent: 'desk', principal: 'somebody' }) };
      const chosen = await started([chooser], way);
      const url = `${await chosen.getUrl()}/mcp`;
      expect((await rpc({ url }, 'tools/list')).status).toBe(200);
      await chosen.close();
    });

    it.each<[string, unknown]>([
      ['an empty text', ''],
      ['no number', Number.NaN],
      ['nothing', null],
      ['an object', { $ne: 'acme' }],
    ])('AGENT_FACTORY that answers with a tenant that is %s admits nobody', async (_, tenantId) => {
      const choice = { agent: 'desk', principal: 'somebody', tenantId };
      const chosen = await started([{ provide: AGENT_FACTORY, useValue: () => choice }], way);
      const url = `${await chosen.getUrl()}/mcp`;
      expect((await rpc({ url }, 'tools/list')).status).toBe(500);
      expect(() => chosen.get(Parley).agentFor(choice as never)).toThrow('no text or number');
      await chosen.close();
    });

    it('a reader that applies no constraint shows no column, no row and no pointer more than was permitted', async () => {
      const { wire, text } = await callTool(at, 'query_class', { ...find, include: ['author'] }, as('desk'));
      expect(wire).not.toContain(SECRET);
      const { results } = JSON.parse(text) as { results: Record<string, unknown>[] };
      expect(results.map(({ objectId }) => objectId)).toEqual(['x1']);
      expect(results[0]).toMatchObject({ title: 'Of acme', author: { objectId: 'a9', name: 'Ann' } });
      for (const hidden of ['orgId', 'internalNote', '_hashed_password', 'ssn'])
        expect(text).not.toContain(hidden);
      const fetched = await callTool(at, 'get_object', { ...find, object_id: 'x2' }, as('desk'));
      expect(fetched.isError).toBe(true);
      expect(fetched.wire).not.toContain(SECRET);
    });

    it('a writer and a searcher that answer with hidden columns show none of them', async () => {
      const row = { class_name: 'Author', fields: { name: 'Eve' } };
      const made = await callTool(at, 'create_object', row, as('editor'));
      expect(made.isError).toBe(false);
      const words = { class_name: 'Post', query: 'of', fields: ['title'] };
      const found = await callTool(at, 'atlas_text_search', words, as('desk'));
      for (const { wire } of [made, found]) expect(wire).not.toContain(SECRET);
    });

    it('a catalogue cannot open a class that the policy hides', async () => {
      const hidden = await callTool(at, 'query_class', { class_name: 'Contract' }, as('desk'));
      expect(hidden.code).toBe('access_denied');
      const { text } = await callTool(at, 'get_all_schemas', {}, as('desk'));
      expect(text).toContain('Ledger');
      expect(text).not.toContain('Contract');
    });

    it('an authenticator that names an unknown agent, or none, admits nobody and gives no reason', async () => {
      const unknown = await rpc(at, 'tools/list', {}, as('stranger'));
      expect([unknown.status, unknown.text.includes('stranger')]).toEqual([500, false]);
      const nobody = await rpc(at, 'tools/list');
      expect([nobody.status, nobody.headers.get('www-authenticate')]).toEqual([401, 'Desk realm="news"']);
    });

    it.each(['throw', 'nothing', 'perhaps', 'deny'])(
      'an approver whose answer is to %s refuses, and its error stays inside',
      async (say) => {
        const { code, wire } = await callTool(at, 'asks_first', { say }, as('editor'));
        expect(code).toBe('approval_denied');
        expect(wire).not.toContain(SECRET);
      },
    );

    it('a session that the directory does not know reads nothing', async () => {
      const { wire } = await callTool(at, 'query_class', find, as('signedIn', 'r:bad'));
      expect(wire).not.toContain('Of acme');
    });

    it('a limiter that says no, or that fails, lets no call through', async () => {
      const factory = (principal: string) => ({
        provide: AGENT_FACTORY,
        useValue: () => ({ agent: 'desk', principal }),
      });
      for (const principal of ['spent', 'broken']) {
        const limits = { provide: RateLimiters, useFactory: BINDINGS.RateLimiters };
        const limited = await started([factory(principal), limits], way);
        const url = `${await limited.getUrl()}/mcp`;
        const { code, wire } = await callTool({ url }, 'query_class', find);
        expect(code).toBe('rate_limited');
        expect(wire).not.toContain(SECRET);
        await limited.close();
      }
    });
  },
);

describe('a binding of a wrong type', () => {
  const starting = (...bindings: Exclude<Provider, Function>[]) =>
    started(bindings).then(
      (app) => app.close().then(() => 'started'),
      (error: { issues?: { path: string; message: string }[] }) => error.issues ?? error,
    );

  it.each([...Object.entries(TOKENS), ['AGENT_FACTORY', AGENT_FACTORY] as const])(
    'of %s ends the start, and says so by its name',
    async (name, provide) => {
      for (const useValue of [undefined, 'text', {}]) {
        const faults = (await starting({ provide, useValue })) as { path: string; message: string }[];
        expect(faults).toEqual([{ path: name, message: expect.stringMatching(/^is bound to/) as string }]);
      }
    },
  );

  it('is reported with every other one, and with what is missing', async () => {
    const half = { provide: RecordReader, useValue: { find: () => Promise.resolve([]) } };
    expect(await starting(half, { provide: AuditSink, useValue: 1 })).toEqual([
      { path: 'AuditSink', message: 'is bound to something that is no object' },
      {
        path: 'RecordReader',
        message: 'is bound to an object without run, count, aggregate, related, explain',
      },
    ]);
  });

  it('is also two that say who is calling', async () => {
    const choice = { provide: AGENT_FACTORY, useValue: () => null };
    const rule = { provide: Authenticator, useFactory: BINDINGS.Authenticator };
    expect(await starting(choice, rule)).toMatchObject([{ path: 'AGENT_FACTORY' }]);
  });
});

describe('an agent that was made elsewhere', () => {
  it('admits nobody, whatever rights it has', async () => {
    class Forger extends Authenticator {
      private kept: unknown;
      override authenticate(request: { readonly headers: object }) {
        const { admit } = request as unknown as { admit(choice: object): object };
        // Kept from an earlier request, or another object altogether.
        const forged =
          'x-kept' in request.headers ? this.kept : { ...admit({ agent: 'desk', principal: 'p' }) };
        this.kept = admit({ agent: 'desk', principal: 'p' });
        return Promise.resolve(forged as never);
      }
    }
    const app = await started([{ provide: Authenticator, useValue: new Forger() }]);
    const url = `${await app.getUrl()}/mcp`;
    expect((await rpc({ url }, 'tools/list')).status).toBe(500);
    expect((await rpc({ url }, 'tools/list', {}, { 'X-Kept': '1' })).status).toBe(500);
    await app.close();
  });
});

describe('a queue', () => {
  it('is worked on only once the tools of the application are there', async () => {
    const found: (string | undefined)[] = [];
    const builder = Test.createTestingModule({
      imports: [ParleyModule.forRoot(OPTIONS)],
      providers: [DeskTools],
    });
    const queue = await BINDINGS.TaskQueue();
    const module = await builder
      .overrideProvider(TaskQueue)
      .useValue(
        new Proxy(queue, {
          get: (target, key) => {
            if (key === 'work')
              return () => found.push(module.get(Parley).tools.get('goes_on')?.definition.name);
            const value: unknown = Reflect.get(target, key, target);
            return typeof value === 'function' ? (value.bind(target) as unknown) : value;
          },
        }),
      )
      .compile();
    await module.init();
    expect(found).toEqual(['goes_on']);
    await module.close();
  });
});

describe('rows past the policy', () => {
  it('are not handed out without a name, and under a permitted one leave a record each time', async () => {
    const heard: unknown[] = [];
    class Heard extends AuditSink {
      override record(): void {}
      override recordEvent(event: unknown): void {
        heard.push(event);
      }
    }
    const sink = { provide: AuditSink, useValue: new Heard() };
    const app = await started([sink], 'providers', { ...OPTIONS, ungoverned: ['nightly'] });
    const parley = app.get(Parley);
    for (const port of [RecordReader, RecordWriter, RecordSearcher, ModuleRef])
      expect(() => parley.get<object>(port)).toThrow('knows no policy');
    expect(() => parley.ungoverned.as('other')).toThrow("'other' is not among the names");
    const rows = await parley.ungoverned.as('nightly').find('Contract');
    expect(rows[0]).toMatchObject({ clause: SECRET });
    await expect(
      parley.ungoverned.as('nightly').find('Contract', { where: { $no: 1 } }),
    ).rejects.toMatchObject({
      name: 'StoreError',
    });
    expect(heard).toEqual(
      [true, false].map((success) =>
        expect.objectContaining({
          type: 'operator_action',
          success,
          action: 'ungoverned_access',
          target: 'nightly: find Contract',
        }),
      ),
    );
    await app.close();
  });
});
