import 'reflect-metadata';
import { ExpressAdapter } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { firstValueFrom, Subject } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AGENT_FACTORY, type AgentChooser, ParleyModule, Tool } from '@parley/server';
import { callTool, post, rpc, startDatabase } from '../../support/service.js';

/* An application names all of its callers with one principal; something else decides which rows each of them has. */

const everyone = { '*': true };
const database = await startDatabase({
  schemas: ['Letter', 'Parcel', 'Card'].map((className) => ({
    className,
    fields: { text: { type: 'String' }, region: { type: 'String' } },
    classLevelPermissions: { find: everyone, get: everyone, count: everyone, create: everyone },
  })),
  users: ['ann', 'bob'].map((user) => ({ objectId: user, username: user, password: `of ${user}` })),
  sessions: ['ann', 'bob'].map((user) => ({
    sessionToken: `r:${user}`,
    user,
    expiresAt: '2099-01-01T00:00:00.000Z',
  })),
  objects: {},
});

const choose: AgentChooser = ({ headers }) => {
  const by = String(headers['x-by']);
  const caller = String(headers['x-caller']);
  return {
    agent: `${by}${headers['x-writes'] === 'proposed' ? '_proposes' : ''}`,
    principal: 'backend',
    tenantId: 'one',
    ...(by === 'session' && { identity: { session: `r:${caller}` } }),
    claims: { region: caller, iat: Math.random() },
  };
};

/** A call that goes on until the test lets it end. */
class Waiting {
  private readonly beginning = new Subject<void>();
  private readonly resting = new Subject<void>();
  readonly begun = firstValueFrom(this.beginning);
  private readonly rest = firstValueFrom(this.resting);

  @Tool({ name: 'wait', description: 'Waits.', input: { type: 'object', properties: {} } })
  async wait() {
    this.beginning.next();
    await this.rest;
    return { waited: true };
  }

  end(): void {
    this.resting.next();
  }
}

const WAYS = [
  { by: 'session', class_name: 'Card' },
  { by: 'filter', class_name: 'Letter' },
  { by: 'bypass', class_name: 'Parcel' },
];

describe.each(WAYS)('what is kept for callers of one principal, told apart by $by', ({ by, class_name }) => {
  let url: string;
  let close: () => Promise<void>;
  let waiting: Waiting;
  beforeAll(async () => {
    const common = { permissions: 'write', rateLimit: 1_000_000 } as const;
    const filter = {
      ...common,
      filters: {
        Letter: ({ claims }: { claims: Readonly<Record<string, unknown>> }) => ({ region: claims['region'] }),
      },
    };
    const agents = { session: common, filter, bypass: common };
    const proposing = Object.entries(agents).map(
      ([name, agent]) => [`${name}_proposes`, { ...agent, writes: 'proposed' }] as const,
    );
    const module = await Test.createTestingModule({
      imports: [
        ParleyModule.forRoot({
          database: { uri: database.uri },
          server: { stateKey: 'a key of thirty-two characters, or more', drainTimeout: 1 },
          agents: { ...agents, ...Object.fromEntries(proposing) },
          changes: { undo: 'agents' },
          policy: {
            classes: {
              Card: {},
              Letter: {},
              Parcel: {
                tenantScope: { field: 'region', bypass: ({ claims }) => claims['region'] === 'ann' },
              },
            },
          },
          environment: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
          providers: [{ provide: AGENT_FACTORY, useValue: choose }],
        }),
      ],
      providers: [Waiting],
    }).compile();
    waiting = module.get(Waiting);
    const app = module.createNestApplication(new ExpressAdapter(), { logger: false });
    await app.listen(0, '127.0.0.1');
    url = `${await app.getUrl()}/mcp`;
    close = () => app.close();
  }, 60_000);
  afterAll(() => close?.());

  const as = (caller: string, writes = 'direct') => ({ 'X-By': by, 'X-Caller': caller, 'X-Writes': writes });
  const create = (caller: string, writes: string, fields: object, more: object = {}) =>
    callTool({ url }, 'create_object', { class_name, fields, ...more }, as(caller, writes));
  /** A value that the caller may write: its rows are those of its region. */
  const own = (caller: string, text: string) => ({
    text,
    ...(by === 'filter' && { region: caller }),
    ...(by === 'bypass' && { region: 'one' }),
  });

  it('shows no change set of the other one, and adds nothing to it', async () => {
    const { data } = await create('ann', 'proposed', own('ann', 'A draft'));
    const set = String(data['change_set']);
    const list = (caller: string) => callTool({ url }, 'list_changes', {}, as(caller, 'proposed'));
    expect((await list('ann')).wire).toContain(set);
    expect((await list('bob')).wire).not.toContain(set);
    const shown = await callTool({ url }, 'show_changes', { change_set: set }, as('bob', 'proposed'));
    expect(shown.wire).not.toContain('A draft');
    const added = await create('bob', 'proposed', own('bob', 'Another'));
    expect(added.data['change_set']).toMatch(/\w/);
    expect(added.data['change_set']).not.toBe(set);
  });

  it('does each write of a key for whoever calls', async () => {
    const ids = [];
    for (const caller of ['ann', 'bob', 'ann']) {
      const { text } = await create(caller, 'direct', own(caller, 'Same'), { idempotency_key: 'one' });
      ids.push(/"objectId":"(\w+)"/.exec(text)?.[1]);
    }
    expect(ids[1]).toMatch(/\w/);
    expect(ids[1]).not.toBe(ids[0]);
    expect(ids[2]).toBe(ids[0]);
  });

  it('lists and reads no export of the other one', async () => {
    const ordered = await callTool({ url }, 'export_data', { class_name, delivery: 'resource' }, as('ann'));
    const uri = /export:\/\/[\w-]+/.exec(ordered.wire)?.[0] ?? '';
    expect((await rpc({ url }, 'resources/list', {}, as('ann'))).text).toContain(uri);
    expect((await rpc({ url }, 'resources/list', {}, as('bob'))).text).not.toContain(uri);
    expect((await rpc({ url }, 'resources/read', { uri }, as('bob'))).body.error).toBeDefined();
  });

  it('ends no call of the other one, whatever id both have for their conversation', async () => {
    const label = { 'Mcp-Session-Id': 'conversation' };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'wait', arguments: {} } };
    const answer = post({ url }, JSON.stringify(body), { ...as('ann'), ...label });
    await waiting.begun;
    const theirs = { ...as('bob'), ...label };
    expect((await rpc({ url }, 'notifications/cancelled', { requestId: 1 }, theirs)).status).toBe(202);
    expect((await fetch(url, { method: 'DELETE', headers: theirs })).status).toBe(204);
    waiting.end();
    expect((await answer).text).toContain('waited');
  });
});
