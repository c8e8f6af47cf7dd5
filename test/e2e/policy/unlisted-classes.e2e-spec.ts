import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { viewDatabase, type DatabaseView } from '../../support/database-dump.js';
import {
  callTool,
  type Database,
  GATES_OPEN,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

const HELD = 'zekret';
const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const SEED = {
  schemas: [
    { className: 'Vault', fields: { code: { type: 'String' }, amount: { type: 'Number' } } },
    {
      className: 'Note',
      fields: {
        text: { type: 'String' },
        vault: { type: 'Pointer', targetClass: 'Vault' },
        vaults: { type: 'Array' },
        held: { type: 'Object' },
      },
    },
  ],
  users: [{ objectId: 'u1', username: `${HELD}-user`, password: 'p' }],
  roles: [{ name: `${HELD}-role`, users: ['u1'] }],
  objects: {
    Vault: [{ objectId: `${HELD}1`, code: `${HELD}-code`, amount: 7 }],
    Note: [
      {
        objectId: 'n1',
        text: 'seen',
        vault: pointer('Vault', `${HELD}1`),
        vaults: [pointer('Vault', `${HELD}1`)],
        held: { inside: pointer('Vault', `${HELD}1`) },
      },
    ],
  },
};
const KEY = { 'X-MCP-API-Key': 'a key of the operator, long enough' };
const AUTH = {
  agents: { operator: { permissions: 'admin', allowMutations: true, rateLimit: 1_000_000 } },
  auth: [{ apiKey: KEY['X-MCP-API-Key'], agent: 'operator' }],
};

let database: Database;
let view: DatabaseView;
beforeAll(async () => {
  database = await startDatabase(SEED);
  view = viewDatabase(database.uri);
});

/** Every tool that names a class, with arguments that it answers where the class exists. */
const callsOf = (class_name: string): [string, Record<string, unknown>][] => [
  ['get_schema', { class_name }],
  ['query_class', { class_name }],
  ['count_objects', { class_name }],
  ['get_object', { class_name, object_id: `${HELD}1` }],
  ['get_objects', { class_name, ids: [`${HELD}1`] }],
  ['get_sample_objects', { class_name }],
  ['explain_query', { class_name }],
  ['aggregate', { class_name, pipeline: [{ $replaceWith: { row: '$$ROOT' } }] }],
  ['group_by', { class_name, field: 'code' }],
  ['group_by_date', { class_name, field: 'createdAt', interval: 'day' }],
  ['distinct', { class_name, field: 'code' }],
  ['export_data', { class_name }],
  ['call_method', { class_name, method_name: 'open', object_id: `${HELD}1` }],
  ['atlas_text_search', { class_name, query: HELD }],
  ['atlas_autocomplete', { class_name, query: HELD, field: 'code' }],
  ['atlas_faceted_search', { class_name, query: HELD, facets: { code: { type: 'string', path: 'code' } } }],
  ['semantic_search', { class_name, query: HELD }],
  ['find_similar', { class_name, object_id: `${HELD}1` }],
  ['create_object', { class_name, fields: { code: 'new' } }],
  ['update_object', { class_name, object_id: `${HELD}1`, fields: { code: 'new' } }],
  ['delete_object', { class_name, object_id: `${HELD}1` }],
  ['create_class', { class_name, fields: { code: 'String' } }],
  ['delete_class', { class_name }],
];

const CONFIGS: [string, Record<string, unknown>][] = [
  ['no policy', {}],
  ['a policy without classes', { policy: { suppressMasterKeyWarning: true } }],
];

describe.each(CONFIGS)('a service with %s', (_, policy) => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({
      config: { ...AUTH, ...policy, database: { uri: database.uri, name: 'parley' } },
      env: GATES_OPEN,
    });
  });
  afterAll(() => service?.stop());

  it('lists no class: in schemas, resources, completions, prompts and tools', async () => {
    const schemas = await callTool(service, 'get_all_schemas', {}, KEY);
    expect(schemas.data).toMatchObject({ total: 0 });
    const asked: [string, Record<string, unknown>][] = [
      ['tools/list', {}],
      ['resources/list', {}],
      ['resources/templates/list', {}],
      ['prompts/list', {}],
      ['resources/read', { uri: 'parse://schema' }],
      ['resources/read', { uri: 'parse://Vault/schema' }],
      ['resources/read', { uri: 'parse://Vault/count' }],
      ['resources/read', { uri: 'parse://Vault/samples' }],
      ['prompts/get', { name: 'explore_database' }],
      ['prompts/get', { name: 'class_overview', arguments: { class_name: 'Vault' } }],
      ['resources/subscribe', { uri: 'parse://Vault/count' }],
      [
        'completion/complete',
        {
          ref: { type: 'ref/resource', uri: 'parse://{className}/schema' },
          argument: { name: 'className', value: 'V' },
        },
      ],
    ];
    for (const [method, params] of asked) {
      const answer = JSON.stringify(await rpc(service, method, params, KEY));
      const said = JSON.stringify(params).includes('Vault') ? answer.replaceAll('Vault', '') : answer;
      expect([method, said]).not.toEqual([method, expect.stringMatching(/Vault|Note|zekret/)]);
    }
  });

  it('refuses each class of the database as one that does not exist, to every tool', async () => {
    for (const name of ['Vault', 'Note', '_User', '_Role', '_Session'])
      for (const [tool, args] of callsOf(name)) {
        const [there, nowhere] = await Promise.all([
          callTool(service, tool, args, KEY),
          callTool(service, tool, { ...args, class_name: 'Nowhere' }, KEY),
        ]);
        expect([name, tool, there.isError]).toEqual([name, tool, true]);
        expect(there.wire).not.toContain(`${HELD}-`);
        // The classes of Parse have names that everybody knows, and gates of their own.
        if (!name.startsWith('_')) expect(there.text.replaceAll(name, 'Nowhere')).toBe(nowhere.text);
      }
  });

  it('makes no class and changes no row, by whatever tool', async () => {
    const before = await view.dump();
    for (const name of ['Vault', 'Note', 'Brand_New'])
      for (const [tool, args] of callsOf(name)) await callTool(service, tool, args, KEY);
    expect(await view.dump()).toEqual(before);
  });

  it('says at its start what writes a policy', () => {
    expect(service.output().stderr).toMatch(/policy\.classes lists no class.*parley init/);
  });
});

describe('a service whose policy lists one class', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({
      config: {
        ...AUTH,
        database: { uri: database.uri, name: 'parley' },
        policy: { classes: { Note: {}, Planned: {} } },
      },
      env: GATES_OPEN,
    });
  });
  afterAll(() => service?.stop());

  it('leads nobody to another class, by joins, includes, constraints, pointers and exports', async () => {
    const ways: [string, Record<string, unknown>][] = [
      ['query_class', { include: ['vault', 'vaults'] }],
      ['query_class', { where: { vault: { $inQuery: { className: 'Vault', where: { amount: 7 } } } } }],
      ['query_class', { where: { 'vault.code': `${HELD}-code` } }],
      ['query_class', { order: 'vault.code' }],
      ['query_class', { keys: ['vault.code', 'vaults', 'held'] }],
      ['aggregate', { pipeline: [{ $replaceWith: { all: '$$ROOT' } }] }],
      ['aggregate', { pipeline: [{ $group: { _id: '$held' } }] }],
      [
        'aggregate',
        { pipeline: [{ $lookup: { from: 'Vault', localField: '_p_vault', foreignField: '_id', as: 'v' } }] },
      ],
      ['aggregate', { pipeline: [{ $unionWith: 'Vault' }] }],
      ['aggregate', { pipeline: [{ $unionWith: '_User' }] }],
      ['distinct', { field: 'vaults' }],
      ['group_by', { field: 'vault' }],
      ['export_data', { include: ['vault'], format: 'csv' }],
      ['export_data', { pipeline: [{ $lookup: { from: 'Vault', pipeline: [], as: 'v' } }] }],
    ];
    for (const [tool, args] of ways) {
      const answer = await callTool(service, tool, { class_name: 'Note', ...args }, KEY);
      expect([tool, args, answer.wire]).not.toEqual([tool, args, expect.stringContaining(HELD)]);
    }
  });

  it('makes the classes that the policy lists, and says of others where to list them', async () => {
    const planned = await callTool(service, 'create_class', { class_name: 'Planned', fields: {} }, KEY);
    expect([planned.isError, planned.text]).toEqual([false, planned.text]);
    const other = await callTool(service, 'create_class', { class_name: 'Other', fields: {} }, KEY);
    expect(other.text).toMatch(/policy does not list class 'Other'.*policy\.classes/);
    const removed = await callTool(service, 'delete_class', { class_name: 'Vault' }, KEY);
    expect(removed.text.replace('Vault', 'Other')).toBe(other.text);
  });
});
