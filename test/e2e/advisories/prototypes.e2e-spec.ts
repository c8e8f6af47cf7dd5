import 'reflect-metadata';
import { Injectable, Logger } from '@nestjs/common';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { AgentMethod, findClassDeclaration, type MethodCall, ParseClass } from '#tools';
import { loadConfig } from '#config';
import { openDatabase } from '#parley/instance';
import { startHttpService } from '../../../src/http-service.js';
import { callTool, post, rpc } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';
import { isRefused } from './questions.js';

const HIDDEN = 'HIDDEN-7d20-in-another-class';
const HEADERS = { 'X-MCP-API-Key': 'key-of-admin' };

/** What a remote endpoint of the application sent. Not a literal: there `__proto__` would not be a member. */
const remote = (text: string): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;

/** Methods as an application writes them around a webhook: what came over the wire is passed on. */
@ParseClass('Note')
@Injectable()
class NoteMethods {
  static reply = '{}';

  @AgentMethod({})
  fetch() {
    return remote(NoteMethods.reply);
  }

  @AgentMethod({ permission: 'write', type: 'instance' })
  async store(_args: unknown, call: MethodCall) {
    return call.writes?.update('Note', call.objectId, remote(NoteMethods.reply));
  }

  @AgentMethod({})
  args(args: Record<string, unknown>) {
    return { polluted: 'polluted' in {}, own: Object.keys(args) };
  }
}

const folder = makeFolder('advisories');
let service: { url: string; stop: () => Promise<void> };
beforeAll(async () => {
  const seed = {
    schemas: [
      {
        className: 'Note',
        fields: { text: { type: 'String' }, meta: { type: 'Object' }, n: { type: 'Number' } },
      },
      { className: 'Sealed', fields: { text: { type: 'String' } } },
    ],
    objects: {
      Note: [{ objectId: 'n1', text: 'one', meta: { a: 1 }, n: 1 }],
      Sealed: [{ objectId: 's1', text: HIDDEN }],
    },
  };
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(seed));
  writeFileSync(
    join(folder, 'parley.yaml'),
    stringify({
      server: { port: 0 },
      database: { uri: 'embedded', seed: './seed.json' },
      agents: { admin: { permissions: 'admin', rateLimit: 1_000_000 } },
      auth: [{ apiKey: 'key-of-admin', agent: 'admin' }],
      policy: { unlistedClasses: 'allow', classes: { Sealed: { hidden: true } } },
    }),
  );
  const env = Object.fromEntries(
    ['WRITE_TOOLS', 'RAW_CRUD', 'SCHEMA_OPS', 'RAW_SCHEMA'].map((gate) => [
      `PARSE_AGENT_ALLOW_${gate}`,
      'true',
    ]),
  );
  const declared = findClassDeclaration(NoteMethods);
  const loaded = loadConfig(env, folder, declared ? [declared] : []);
  const database = await openDatabase(loaded.config);
  const running = await startHttpService(loaded, database.connection, env, [NoteMethods]);
  Logger.overrideLogger(false);
  service = {
    url: running.url,
    stop: async () => {
      await running.close();
      await database.close();
    },
  };
});
afterAll(() => service?.stop());

/** The service runs in this process: what it does to a prototype is seen here, by the test that made it do so. */
afterEach(() => {
  const touched = [{}, []].some((value) => 'polluted' in value) || Object.keys(Object.prototype).length > 0;
  if (touched) throw new Error('a prototype was polluted');
});

/** Arguments as text, because an object literal cannot hold a member called `__proto__`. */
const callWith = async (tool: string, args: string) => {
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${tool}","arguments":${args}}}`;
  const answer = await post(service, body, HEADERS);
  const result = (answer.body['result'] ?? {}) as { isError?: boolean; _meta?: Record<string, unknown> };
  return {
    text: answer.text,
    status: answer.status,
    refused: answer.body.error !== undefined || result.isError === true,
    code: result._meta?.['parse.error_code'] ?? answer.body.error?.code,
  };
};

const stored = async () => {
  const answer = await callTool(service, 'get_object', { class_name: 'Note', object_id: 'n1' }, HEADERS);
  return answer.data['object'] as Record<string, unknown>;
};

/** Codes that a rule of ours gives; an error, ours or of the database, would have another. */
const RULED = ['invalid_argument', 'invalid_query', 'access_denied', -32602];

describe('GHSA-prm5-8g2m-24gg: writes and queries that reach for a prototype or a BSON type', () => {
  it('the attacks ask something: the same write without them is done', async () => {
    const answer = await callWith(
      'update_object',
      '{"class_name":"Note","object_id":"n1","fields":{"meta":{"a":2,"b":{"c":[1]}}}}',
    );
    expect(answer.refused).toBe(false);
    expect((await stored())['meta']).toEqual({ a: 2, b: { c: [1] } });
  });

  it.each([
    '{"__proto__":{"polluted":true}}',
    '{"meta":{"__proto__":{"polluted":true}}}',
    '{"meta":{"a":{"__proto__":{"polluted":true}}}}',
    '{"meta":{"__op":"Add","objects":[{"__proto__":{"polluted":true}}]}}',
    '{"meta.__proto__.polluted":true}',
    '{"meta.constructor.prototype.polluted":{"__op":"Increment","amount":1}}',
    '{"__proto__.polluted":1}',
    '{"n":{"__op":"Increment","amount":1,"__proto__":{"polluted":true}}}',
    '{"n":{"__op":"__proto__"}}',
    '{"n":{"__op":"constructor"}}',
    '{"meta":{"__type":"__proto__"}}',
    '{"meta":{"_bsontype":"Code","code":"process.exit(1)"}}',
    '{"meta":{"a":[{"_bsontype":"ObjectId","id":"aaaaaaaaaaaa"}]}}',
    '{"meta":{"__op":"Add","objects":[{"_bsontype":"Code","code":"1"}]}}',
  ])('no write carries %s', async (fields) => {
    const before = await stored();
    for (const [tool, args] of [
      ['update_object', `{"class_name":"Note","object_id":"n1","fields":${fields}}`],
      ['create_object', `{"class_name":"Note","fields":${fields}}`],
      ['create_class', `{"class_name":"Made","fields":${fields}}`],
    ] as const) {
      const answer = await callWith(tool, args);
      expect([tool, answer.refused]).toEqual([tool, true]);
      expect(RULED).toContain(answer.code);
    }
    expect(await stored()).toEqual(before);
  });

  it.each([
    '{"__proto__":{"polluted":true}}',
    '{"text":{"__proto__":{"$gt":""}}}',
    '{"meta.__proto__.polluted":1}',
    '{"meta":{"__proto__":1}}',
    '{"$or":[{"__proto__":{"polluted":true}}]}',
    '{"text":{"_bsontype":"Code","code":"process.exit(1)"}}',
    '{"meta":{"a":{"_bsontype":"BSONRegExp","pattern":".*","options":""}}}',
    '{"text":{"$in":[{"_bsontype":"Code","code":"1"}]}}',
    '{"meta.x":{"$ne":{"_bsontype":"MinKey"}}}',
  ])('no constraint carries %s', async (where) => {
    for (const [tool, args] of [
      ['query_class', `{"class_name":"Note","where":${where}}`],
      ['count_objects', `{"class_name":"Note","where":${where}}`],
      ['group_by', `{"class_name":"Note","field":"text","where":${where}}`],
      ['aggregate', `{"class_name":"Note","pipeline":[{"$match":${where}}]}`],
      ['aggregate', `{"class_name":"Note","pipeline":[{"$addFields":{"x":${where}}}]}`],
      ['aggregate', `{"class_name":"Note","pipeline":[{"$addFields":{"x":{"$literal":${where}}}}]}`],
      ['export_data', `{"class_name":"Note","pipeline":[{"$match":${where}}]}`],
    ] as const) {
      const answer = await callWith(tool, args);
      expect([args, answer.refused]).toEqual([args, true]);
      expect([args, RULED.includes(answer.code as string)]).toEqual([args, true]);
    }
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'])(
    'no name is looked up on a prototype: %s',
    async (name) => {
      for (const [tool, args] of [
        ['query_class', `{"class_name":"${name}"}`],
        ['call_method', `{"class_name":"Note","method_name":"${name}"}`],
        ['call_method', `{"class_name":"${name}","method_name":"fetch"}`],
        ['query_class', `{"class_name":"Note","where":{"text":{"$${name}":1}}}`],
        [name, '{}'],
      ] as const) {
        const answer = await callWith(tool, args);
        expect([tool, args, answer.refused]).toEqual([tool, args, true]);
        expect(answer.code).not.toBe('internal_error');
      }
      const method = await rpc(service, name, {}, HEADERS);
      expect(method.body.error?.code).toBe(-32601);
      const prompt = await rpc(service, 'prompts/get', { name }, HEADERS);
      expect(prompt.body.error?.code).toBe(-32602);
    },
  );
});

// Parley calls no webhooks. Methods of the application may, and what they bring back goes through the same doors.
describe('GHSA-93vw-8fm5-p2jf: what a remote endpoint of the application sends back', () => {
  const answerOf = (method: string, reply: string, more: object = {}) => {
    NoteMethods.reply = reply;
    return callTool(service, 'call_method', { class_name: 'Note', method_name: method, ...more }, HEADERS);
  };

  it('the attacks ask something: a plain reply is passed on, and stored', async () => {
    const passed = await answerOf('fetch', '{"a":{"b":1}}');
    expect(passed.data['result']).toEqual({ a: { b: 1 } });
    const kept = await answerOf('store', '{"meta":{"from":"remote"}}', { object_id: 'n1' });
    expect(kept.isError).toBe(false);
    expect((await stored())['meta']).toEqual({ from: 'remote' });
  });

  it.each([
    '{"__proto__":{"polluted":true}}',
    '{"meta":{"__proto__":{"polluted":true}}}',
    '{"meta":{"a":[{"__proto__":{"polluted":true}}]}}',
    '{"meta":{"__proto__":{"_hashed_password":"x"}}}',
    '{"meta":{"_hashed_password":"x"}}',
    '{"meta":{"_bsontype":"Code","code":"1"}}',
    '{"ACL":{"*":{"write":true}}}',
    '{"_rperm":["*"]}',
  ])('a method stores none of %s', async (reply) => {
    const before = await stored();
    const answer = await answerOf('store', reply, { object_id: 'n1' });
    expect(isRefused(answer)).toBe(true);
    expect(RULED).toContain(answer.code ?? answer.rpcError?.code);
    expect(await stored()).toEqual(before);
  });

  it.each([
    `{"__proto__":{"className":"Sealed","text":"${HIDDEN}"}}`,
    `{"a":{"__proto__":{"className":"Sealed","text":"${HIDDEN}"}}}`,
    `{"className":"Sealed","text":"${HIDDEN}","__proto__":{"className":"Note"}}`,
    `{"a":[{"__proto__":{"_hashed_password":"${HIDDEN}"}}]}`,
    `{"__proto__":{"_session_token":"${HIDDEN}","a":{"ACL":{"${HIDDEN}":{}}}}}`,
    `{"constructor":{"prototype":{"className":"Sealed","text":"${HIDDEN}"}}}`,
  ])('a reply is redacted below a prototype’s name as anywhere: %s', async (reply) => {
    const answer = await answerOf('fetch', reply);
    expect(answer.isError).toBe(false);
    expect(answer.wire).not.toContain(HIDDEN);
  });

  it('a member called __proto__ stays a member, and becomes nobody’s prototype', async () => {
    const answer = await answerOf('fetch', '{"__proto__":{"polluted":true},"own":1}');
    expect(answer.text).toContain('"__proto__"');
    expect(answer.text).toContain('"own"');
  });

  it('arguments of a method bring none in', async () => {
    for (const args of ['{"__proto__":{"polluted":true}}', '{"a":{"b":{"__proto__":{"polluted":true}}}}']) {
      const answer = await callWith(
        'call_method',
        `{"class_name":"Note","method_name":"args","arguments":${args}}`,
      );
      expect([args, answer.code]).toEqual([args, 'invalid_argument']);
    }
  });
});
