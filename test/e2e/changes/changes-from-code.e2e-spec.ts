import 'reflect-metadata';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { McpRequest, Parley, ParleyModule } from '@parley/server';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { startDatabase } from '../../support/service.js';

const posts = await startDatabase(POSTS_SEED);
let app: NestExpressApplication;
let parley: Parley;

beforeAll(async () => {
  const free = { permissions: 'admin', tenantId: 'acme', rateLimit: 1_000_000 } as const;
  const module = await Test.createTestingModule({
    imports: [
      ParleyModule.forRoot({
        database: { uri: posts.uri },
        server: { stateKey: 'a key of thirty-two characters, or more', drainTimeout: 1 },
        policy: POSTS_POLICY,
        agents: {
          helper: free,
          keeper: free,
          proposer: { ...free, writes: 'proposed' },
          reader: { tenantId: 'acme' },
        },
        auth: [{ anonymous: true, agent: 'reader' }],
        changes: { record: 'all' },
        gates: { PARSE_AGENT_ALLOW_WRITE_TOOLS: true, PARSE_AGENT_ALLOW_RAW_CRUD: true },
        environment: { PARSE_MCP_ENABLED: 'true' },
      }),
    ],
  }).compile();
  app = module.createNestApplication<NestExpressApplication>(new ExpressAdapter(), { logger: false });
  await app.init();
  parley = app.get(Parley);
});
afterAll(async () => {
  await app?.close();
  await posts.stop();
});

const agentOf = (agent: string) => parley.agentFor({ agent, principal: agent });
const call = (name: string, args: object) => parley.runner.run(name, args, new McpRequest(agentOf('helper')));

describe('A sub-agent of an agent whose writes are proposed', () => {
  it('is shown no row of the set that is hidden from it, and neither submits nor takes back a set with one', async () => {
    const root = parley.agentFor({ agent: 'proposer', principal: 'ada' });
    const filters = { Post: { status: 'live' } };
    const narrow = await parley.subAgents.create(root, { permissions: 'admin', filters });
    const ask = (name: string, args: object, agent = narrow) =>
      parley.runner.run(name, args, new McpRequest(agent));
    const rename = (id: string, agent = narrow) =>
      ask('update_object', { class_name: 'Post', object_id: id, fields: { title: 'New' } }, agent);
    const proposed = JSON.stringify(await rename('p00', root));
    const [, set = ''] = /"change_set":"([^"]+)"/.exec(proposed) ?? [];
    expect(JSON.stringify(await rename('p01'))).toContain(set);
    const change = { change_set: set };
    const whole = JSON.stringify(await ask('show_changes', change, root));
    expect(whole).toMatch(/p00.*p01/s);
    const shown = JSON.stringify(await ask('show_changes', change));
    expect(shown).toContain('p01');
    expect(shown).toContain('of a class or row that you may not read');
    const submitted = JSON.stringify(await ask('submit_changes', { ...change, title: 'a', reason: 'b' }));
    expect(submitted).toContain('hidden from this sub-agent');
    const refreshed = JSON.stringify(await ask('refresh_changes', change));
    await ask('discard_changes', change, root);
    const bare = JSON.stringify(await ask('show_changes', change));
    expect(bare).toContain('p01');
    expect([shown, submitted, refreshed, bare].join()).not.toMatch(/p00|Post 0\b/);
  });
});

describe('Parley.changes', () => {
  it('lists, shows and takes back what an agent wrote, as the agent that it is called for', async () => {
    const { changes } = parley;
    const since = Date.now();
    await call('update_object', { class_name: 'Post', object_id: 'p00', fields: { title: 'Wrong' } });
    const keeper = agentOf('keeper');
    const [listed] = await changes.list(keeper, { agent: 'helper', since });
    expect(listed).toMatchObject({ kind: 'direct', state: 'applied', agent: 'helper' });
    const shown = await changes.show(keeper, listed?.change_set ?? '');
    expect(shown.entries).toMatchObject([{ before: { title: 'Post 0' }, after: { title: 'Wrong' } }]);
    const target = { agent: 'helper', since, until: Date.now() + 1 };
    await expect(changes.previewUndo(agentOf('reader'), target)).rejects.toThrow('permission');
    const { digest } = await changes.previewUndo(keeper, target);
    await expect(changes.undo(keeper, target, { digest: 'another' })).rejects.toThrow('digest');
    expect(await changes.undo(keeper, target, { digest })).toMatchObject({ kind: 'undo', state: 'applied' });
    const read = await call('get_object', { class_name: 'Post', object_id: 'p00' });
    expect(JSON.stringify(read)).toContain('Post 0');
  });

  it('takes nothing back for a target that it does not know to the letter', async () => {
    const { changes } = parley;
    const since = Date.now();
    await call('update_object', { class_name: 'Post', object_id: 'p03', fields: { title: 'Kept' } });
    const keeper = agentOf('keeper');
    const [listed] = await changes.list(keeper, { agent: 'helper', since });
    const target = { agent: 'helper', since };
    for (const wrong of [
      { change_set: listed?.change_set, keyName: 'ci' },
      { change_set: { $ne: 'none' } },
      { ...target, keyname: 'ci' },
      { ...target, key: 'ci' },
      { ...target, className: 'Author' },
      { ...target, agent: { $ne: 'none' } },
      { ...target, keyName: null },
      { ...target, since: null },
      { ...target, since: new Date(since) },
      { agent: 'helper' },
      { since },
      {},
    ])
      await expect(changes.previewUndo(keeper, wrong as unknown as typeof target)).rejects.toMatchObject({
        refusal: { code: 'invalid_argument' },
      });
    for (const wrong of [{ agnet: 'helper' }, { agent: { $ne: 'none' } }, { since: null }, { limit: '1' }])
      await expect(changes.list(keeper, wrong as object)).rejects.toMatchObject({
        refusal: { code: 'invalid_argument' },
      });
    await expect(changes.show(keeper, { $ne: 'none' } as never)).rejects.toThrow('no such change set');
    const { change_sets: sets } = await changes.previewUndo(keeper, { ...target, until: undefined } as never);
    expect(sets).toEqual([listed?.change_set]);
  });
});
