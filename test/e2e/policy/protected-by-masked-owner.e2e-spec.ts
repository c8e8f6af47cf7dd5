import { beforeAll, expect, it } from 'vitest';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const SECRET = 'S3CRET-of-the-owner';
const open = { '*': true };
const text = { type: 'String' };
const SEED = {
  schemas: [
    {
      className: 'Note',
      fields: { text, secret: text, owner: { type: 'Pointer', targetClass: '_User' } },
      classLevelPermissions: {
        find: open,
        get: open,
        count: open,
        update: open,
        protectedFields: { 'userField:owner': ['secret'] },
      },
    },
  ],
  users: [{ objectId: 'ada', username: 'ada', password: 'ada-secret' }],
  sessions: [{ sessionToken: 'r:session-of-ada', user: 'ada', expiresAt: '2099-01-01T00:00:00.000Z' }],
  objects: {
    Note: [
      {
        objectId: 'own',
        text: 'a',
        secret: SECRET,
        owner: { __type: 'Pointer', className: '_User', objectId: 'ada' },
      },
    ],
  },
};

let database: Database;
let service: Service;
beforeAll(async () => {
  database = await startDatabase(SEED);
  service = await startService({
    config: {
      server: { stateKey: 'a key of thirty-two characters, or more' },
      database: { uri: database.uri, name: 'parley' },
      agents: Object.fromEntries(
        ['direct', 'proposed'].map((writes) => [
          writes,
          { permissions: 'write', identity: { session: 'caller' }, rateLimit: 1_000_000, writes },
        ]),
      ),
      auth: ['direct', 'proposed'].map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: { classes: { Note: { masks: { owner: 'deny' } } } },
    },
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
}, 60_000);

it.each(['direct', 'proposed'])(
  'A field that is hidden from the owner of a row stands in no answer to a %s write, where the owner is masked',
  async (writes) => {
    const headers = { 'X-MCP-API-Key': `key-of-${writes}`, 'X-Parse-Session-Token': 'r:session-of-ada' };
    const row = { class_name: 'Note', object_id: 'own' };
    const updated = await callTool(service, 'update_object', { ...row, fields: { text: 'b' } }, headers);
    expect(updated).toMatchObject({ isError: false });
    const read = await callTool(service, 'get_object', row, headers);
    expect(read).toMatchObject({ isError: false });
    expect(updated.wire + read.wire).not.toContain(SECRET);
  },
);
