import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, GATES_OPEN, type Service, startService } from '../../support/service.js';

const cloud = fileURLToPath(new URL('../../fixtures/cloud/triggers.cjs', import.meta.url));

const NUMBERS = Array.from({ length: 90 }, (_, index) => index + 1);
/** Cloud Code removes these from answers: single ones, and more at once than a page holds. */
const isHidden = (number: number) => number % 5 === 0 || (number > 10 && number < 16);
const VISIBLE = NUMBERS.filter((number) => !isHidden(number));
const toId = (number: number) => `e${String(number).padStart(2, '0')}`;
type Arguments = Record<string, unknown>;
/** The arguments of a call that an answer proposes. */
const callOf = (proposed: unknown) => (proposed as { arguments: Arguments } | undefined)?.arguments;
const ROLES = ['north', 'south', 'east', 'west', 'upper', 'lower', 'inner'];

const SEED = {
  schemas: [{ className: 'Entry', fields: { number: { type: 'Number' }, hidden: { type: 'Boolean' } } }],
  users: [{ objectId: 'ada', username: 'ada', ACL: { ada: { read: true, write: true } } }],
  sessions: [{ sessionToken: 'r:session-of-ada', user: 'ada', expiresAt: '2099-01-01T00:00:00.000Z' }],
  roles: ROLES.map((name) => ({ objectId: `role-${name}`, name, users: ['ada'] })),
  objects: {
    Entry: NUMBERS.map((number) => ({
      objectId: toId(number),
      number,
      hidden: isHidden(number),
    })),
    Ward: ROLES.map((name) => ({ objectId: name, ACL: { [`role:${name}`]: { read: true } } })),
  },
};
const SESSION = { 'X-MCP-API-Key': 'key-session', 'X-Parse-Session-Token': 'r:session-of-ada' };
const AS_ADA = { 'X-MCP-API-Key': 'key-asAda' };

let parse: ParseUnderTest;
let service: Service;
beforeAll(async () => {
  parse = await ParseUnderTest.start({ cloud, maxLimit: 4 });
  await parse.fill(SEED);
  const shape = { rateLimit: 1_000_000 };
  service = await startService({
    config: {
      agents: {
        session: { ...shape, identity: { session: 'caller' } },
        asAda: { ...shape, identity: { user: 'ada' } },
      },
      auth: ['session', 'asAda'].map((agent) => ({ apiKey: `key-${agent}`, agent })),
      policy: { unlistedClasses: 'allow' },
      parse: parse.cautiousConfig,
      database: { uri: parse.databaseUri, name: parse.databaseName },
    },
    env: GATES_OPEN,
  });
}, 120_000);

const readNumbers = (rows: unknown) => (rows as { number: number }[]).map(({ number }) => number);

describe('an answer of a Parse Server that is shorter than was asked for', { timeout: 60_000 }, () => {
  it.each([2, 3, 7, 10, 22, 60, 75, 100])('leaves no row out of pages of %d rows', async (limit) => {
    const read: number[] = [];
    const asked: Arguments[] = [{ class_name: 'Entry', order: 'number', limit }];
    for (let args = asked.shift(); args !== undefined; args = asked.shift()) {
      const { data } = await callTool(service, 'query_class', args, SESSION);
      read.push(...readNumbers(data['results']));
      const proposed = [callOf(data['truncated_call']), callOf(data['next_call'])];
      asked.push(...proposed.filter((further) => further !== undefined));
    }
    // A row behind a removed one stands at the end of its page and at the beginning of the next.
    expect([...new Set(read)]).toEqual(VISIBLE);
  });

  it.each(['query_class', 'export_data'])('leaves no row out of the texts of %s', async (tool) => {
    const read = new Set<string>();
    let args: Arguments | undefined = { class_name: 'Entry', format: 'csv', limit: 4 };
    while (args !== undefined) {
      const { data } = await callTool(service, tool, args, SESSION);
      for (const [id] of String(data['output']).matchAll(/\be\d\d\b/g)) read.add(id);
      args = callOf(data['next_call']);
    }
    expect([...read].sort()).toEqual(VISIBLE.map(toId));
  });

  it('leaves no row out of an exported file', async () => {
    const args = { class_name: 'Entry', format: 'ndjson', delivery: 'resource' };
    const { data } = await callTool(service, 'export_data', args, SESSION);
    const file = await fetch(new URL(String(data['path']), service.url), { headers: SESSION });
    expect((await file.text()).match(/\be\d\d\b/g)).toEqual(VISIBLE.map(toId));
  });

  it('leaves out no role of a user', async () => {
    const { data } = await callTool(service, 'query_class', { class_name: 'Ward' }, AS_ADA);
    expect((data['results'] as { objectId: string }[]).map(({ objectId }) => objectId).sort()).toEqual(
      ROLES.toSorted(),
    );
  });
});
