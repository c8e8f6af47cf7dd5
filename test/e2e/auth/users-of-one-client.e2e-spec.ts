import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { askModern } from '../../support/modern-call.js';
import { callTool, rpc, type Service, startService } from '../../support/service.js';
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.js';
import { makeFolder } from '../../support/started.js';

/* One client of the authorization server acts for many persons: its tokens have no `sub`, and a claim names the person or its rows. */

const AUDIENCE = 'https://parley.example/mcp';
const text = { type: 'String' };
const everyone = { '*': true };
const SEED = {
  schemas: [
    {
      className: 'Letter',
      fields: { text, region: text, owner: { type: 'Pointer', targetClass: '_User' } },
      classLevelPermissions: { create: everyone, update: everyone, readUserFields: ['owner'] },
    },
  ],
  users: ['ann', 'bob'].map((user) => ({ objectId: user, username: user, password: `of ${user}` })),
  objects: { Letter: ['east', 'west'].map((region) => ({ objectId: region, text: region, region })) },
};

const folder = makeFolder('users');
let issuer: TokenIssuer;
let service: Service;
beforeAll(async () => {
  issuer = await startTokenIssuer();
  const writer = { rateLimit: 1_000_000, permissions: 'write' };
  const byUser = { identity: { claim: 'user' } };
  const byRegion = { filters: { Letter: { region: { $agent: 'claims.region' } } } };
  service = await startService({
    seed: SEED,
    config: {
      server: { stateKey: 'a key of thirty-two characters, or more' },
      agents: {
        proposes_user: { ...writer, ...byUser, writes: 'proposed' },
        proposes_region: { ...writer, ...byRegion, writes: 'proposed' },
        writes_user: { ...writer, ...byUser },
        writes_region: { ...writer, ...byRegion },
      },
      auth: [
        {
          agent: 'proposes_user',
          oauth: {
            issuer: issuer.issuer,
            audience: AUDIENCE,
            scopes: {
              'propose-region': 'proposes_region',
              'write-user': 'writes_user',
              'write-region': 'writes_region',
            },
          },
        },
      ],
      changes: { undo: 'agents' },
      // Users are known to the service, whatever agents may read.
      policy: { classes: { Letter: {} } },
      plugins: [fileURLToPath(new URL('../../fixtures/plugins/slow.mjs', import.meta.url))],
    },
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
}, 90_000);

type Headers = Record<string, string>;
const signIn = (claims: object, scope: string) =>
  issuer.signIn({ client_id: 'backend', scope, ...claims }, AUDIENCE);
const call = (headers: Headers, name: string, args: object = {}) => callTool(service, name, args, headers);

/** A request of the stateless era, of a client that follows tasks. */
const modern = async (headers: Headers, method: string, params: Record<string, unknown>) =>
  (await askModern(service, method, params, headers)).body;

const WAYS = [
  { by: 'the user of a claim', one: { user: 'ann' }, other: { user: 'bob' }, scope: 'user' },
  { by: 'a claim in a filter', one: { region: 'east' }, other: { region: 'west' }, scope: 'region' },
];

describe.each(WAYS)(
  'what is kept for callers of one principal, told apart by $by',
  ({ one, other, scope }) => {
    const SECRET = `A draft of ${JSON.stringify(one)}`;
    const both = (kind: string) =>
      Promise.all([signIn(one, `${kind}-${scope}`), signIn(other, `${kind}-${scope}`)]);

    it('shows no change set of the other one, and adds nothing to it', async () => {
      const [mine, theirs] = await both('propose');
      const fields = { text: SECRET, ...(scope === 'region' && one) };
      const proposed = await call(mine, 'create_object', { class_name: 'Letter', fields });
      const set = String(proposed.data['change_set']);
      const about = { change_set: set };
      for (const answer of [
        await call(theirs, 'list_changes'),
        await call(theirs, 'show_changes', about),
        await call(theirs, 'refresh_changes', about),
        await call(theirs, 'submit_changes', { ...about, title: 't', reason: 'r' }),
        await call(theirs, 'submit_changes', { title: 't', reason: 'r' }),
        await call(theirs, 'undo_changes', about),
        await call(theirs, 'discard_changes', about),
      ]) {
        expect(answer.wire).not.toContain(set);
        expect(answer.wire).not.toContain('A draft');
      }
      const resource = { uri: `parse://changes/${set}` };
      expect((await rpc(service, 'resources/list', {}, theirs)).text).not.toContain(set);
      expect((await rpc(service, 'resources/read', resource, theirs)).body.error).toBeDefined();
      const added = await call(theirs, 'create_object', {
        class_name: 'Letter',
        fields: { text: 'Another' },
      });
      expect(added.data['change_set']).not.toBe(set);
      expect((await call(mine, 'show_changes', about)).data).toMatchObject({
        state: 'open',
        rows: { created: 1 },
      });
      expect((await call(mine, 'show_changes', about)).text).toContain('A draft');
    });

    it('does each write of a key for whoever calls', async () => {
      const [mine, theirs] = await both('write');
      const write = { class_name: 'Letter', fields: { text: 'The same' }, idempotency_key: 'one' };
      const ids = [];
      for (const caller of [mine, theirs, mine]) {
        const { text: made } = await call(caller, 'create_object', write);
        ids.push(/"objectId":"(\w+)"/.exec(made)?.[1]);
      }
      expect(ids[0]).toMatch(/\w/);
      expect(ids[1]).toMatch(/\w/);
      expect(ids[1]).not.toBe(ids[0]);
      expect(ids[2]).toBe(ids[0]);
    });

    it('lists and reads no export of the other one', async () => {
      const [mine, theirs] = await both('write');
      const ordered = await call(mine, 'export_data', { class_name: 'Letter', delivery: 'resource' });
      const uri = /export:\/\/[\w-]+/.exec(ordered.wire)?.[0] ?? '';
      expect((await rpc(service, 'resources/list', {}, mine)).text).toContain(uri);
      expect((await rpc(service, 'resources/list', {}, theirs)).text).not.toContain(uri);
      expect((await rpc(service, 'resources/read', { uri }, theirs)).body.error).toBeDefined();
      const file = `${service.origin}/exports/${uri.slice('export://'.length)}`;
      expect((await fetch(file, { headers: theirs })).status).toBe(404);
      expect((await fetch(file, { headers: mine })).status).toBe(200);
    });

    it('knows no task of the other one', async () => {
      const [mine, theirs] = await both('write');
      const until = join(folder, scope);
      const begun = await modern(mine, 'tools/call', { name: 'slow_read', arguments: { until } });
      const { taskId } = begun['result'] as { taskId: string };
      expect(taskId).toMatch(/\w/);
      for (const method of ['tasks/get', 'tasks/cancel'])
        expect((await modern(theirs, method, { taskId }))['error']).toMatchObject({
          message: 'Unknown task',
        });
      expect((await modern(mine, 'tasks/get', { taskId }))['result']).toMatchObject({ status: 'working' });
      await modern(mine, 'tasks/cancel', { taskId });
    });
  },
);
