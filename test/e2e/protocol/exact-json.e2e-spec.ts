import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Long, MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  callTool,
  type Database,
  openSession,
  post,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';
import { makeFolder } from '../../support/started.js';
import { runCommand } from '../../support/terminal.js';

/*
 * What JSON says and a double cannot hold, and what JSON says twice, over every way into Parley. The rows have ids and values that
 * differ only beyond the digits of a double.
 */

const ODD = '9007199254740993';
const EVEN = '9007199254740992';
const ADVICE = /write it as text: "9007199254740993"/;

const CONFIG = {
  agents: { default: { permissions: 'write' } },
  database: { name: 'numbers' },
  policy: {
    unlistedClasses: 'refuse',
    classes: {
      Order: {
        storage: 'plain',
        collection: 'orders',
        id: 'number',
        properties: { total: { type: 'Number' }, name: { type: 'String' } },
        fields: ['total', 'name'],
      },
    },
  },
} as const;

const folder = makeFolder('numbers');
let database: Database;
let documents: MongoClient;
let service: Service;
let config: Record<string, unknown>;
beforeAll(async () => {
  database = await startDatabase({ objects: {} });
  documents = await MongoClient.connect(database.uriOf('numbers'));
  await documents
    .db('numbers')
    .collection('orders')
    .insertMany(
      [EVEN, ODD].map((id) => ({ _id: Long.fromString(id) as never, total: Long.fromString(id), name: id })),
    );
  config = { ...CONFIG, database: { uri: database.uri, name: 'numbers' } };
  writeFileSync(join(folder, 'parley.yaml'), JSON.stringify(config));
  service = await startService({
    config,
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
});
afterAll(async () => {
  await service?.stop();
  await documents?.close();
  await database?.stop();
});

/** One call whose arguments are JSON text. */
const called = (tool: string, args: string) =>
  post(
    service,
    `{"jsonrpc":"2.0","id":"one","method":"tools/call","params":{"name":"${tool}","arguments":${args}}}`,
  );
const resultOf = (body: Record<string, unknown>) =>
  body['result'] as {
    isError: boolean;
    content: { text: string }[];
    structuredContent?: { rows?: { objectId: string }[] };
    _meta?: Record<string, unknown>;
  };
const stored = (id: string) =>
  documents
    .db('numbers', {})
    .collection('orders', { promoteLongs: false })
    .findOne({ _id: Long.fromString(id) as never });

describe('an integer that a double cannot hold', () => {
  it.each([
    ['query_class', `{"class_name":"Order","where":{"objectId":${ODD}}}`],
    ['query_class', `{"class_name":"Order","where":{"$or":[{"total":{"$in":[1,${ODD}]}}]}}`],
    ['query_class', `{"class_name":"Order","limit":${ODD}}`],
    ['get_object', `{"class_name":"Order","object_id":${ODD}}`],
    ['aggregate', `{"class_name":"Order","pipeline":[{"$match":{"total":${ODD}}}]}`],
    ['aggregate', `{"class_name":"Order","pipeline":[{"$addFields":{"x":{"$add":["$total",-${ODD}]}}}]}`],
    ['export_data', `{"class_name":"Order","where":{"total":${ODD}}}`],
    ['create_object', `{"class_name":"Order","fields":{"total":${ODD}}}`],
    ['update_object', `{"class_name":"Order","object_id":"${ODD}","fields":{"total":${ODD}}}`],
  ])('is refused with what to write instead, in every argument: %s %s', async (tool, args) => {
    const { status, body } = await called(tool, args);
    const { isError, content, _meta } = resultOf(body);
    expect(status).toBe(200);
    expect({ isError, code: _meta?.['parse.error_code'] }).toEqual({
      isError: true,
      code: 'invalid_argument',
    });
    expect(content[0]?.text).toMatch(/write it as text: "-?9007199254740993"/);
  });

  it('names its place in the refusal', async () => {
    const { body } = await called(
      'query_class',
      `{"class_name":"Order","where":{"$or":[{"total":{"$in":[1,${ODD}]}}]}}`,
    );
    expect(resultOf(body).content[0]?.text).toContain('arguments.where.$or[0].total.$in[1]');
  });

  it('is written and found with all digits as text', async () => {
    const updated = await callTool(service, 'update_object', {
      class_name: 'Order',
      object_id: ODD,
      fields: { total: '9007199254740995' },
    });
    expect(updated).toMatchObject({ isError: false });
    expect(String((await stored(ODD))?.['total'])).toBe('9007199254740995');
    const found = await callTool(service, 'query_class', {
      class_name: 'Order',
      where: { total: '9007199254740995' },
    });
    expect(found.data['results']).toMatchObject([{ objectId: ODD }]);
  });

  it('is no reason to refuse numbers that a double holds', async () => {
    for (const literal of [
      EVEN,
      '1e3',
      '-0',
      '0.1',
      '0.1000000000000000055511151231257827',
      '1E+2',
      '1e22',
    ]) {
      const { body } = await called('query_class', `{"class_name":"Order","where":{"total":${literal}}}`);
      expect({ literal, isError: resultOf(body).isError }).toEqual({ literal, isError: false });
    }
  });

  it('is not infinite: a number beyond the largest double is refused', async () => {
    const { body } = await called('query_class', '{"class_name":"Order","where":{"total":1e400}}');
    expect(resultOf(body).content[0]?.text).toContain('arguments.where.total is 1e400');
  });

  it('is refused in the params of other methods', async () => {
    const { status, body } = await post(
      service,
      `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"parley://x","of":[${ODD}]}}`,
    );
    expect({ status, id: body['id'], code: body.error?.code }).toEqual({ status: 200, id: 7, code: -32602 });
    expect(body.error?.message).toMatch(ADVICE);
  });

  it('keeps its digits as the id of a request, and its answer', async () => {
    const { text } = await post(service, `{"jsonrpc":"2.0","id":${ODD},"method":"ping"}`);
    expect(text).toContain(`"id":${ODD},"result"`);
    const unknown = await post(service, `{"jsonrpc":"2.0","id":-${ODD},"method":"nothing/there"}`);
    expect(unknown.text).toContain(`"id":-${ODD},"error"`);
  });

  it('keeps its digits in each id of a batch, and refuses only the message that has it elsewhere', async () => {
    const session = await openSession(service, {}, '2025-03-26');
    const { text } = await post(
      service,
      `[{"jsonrpc":"2.0","id":${ODD},"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"query_class","arguments":{"class_name":"Order","limit":${ODD}}}}]`,
      session,
    );
    expect(text).toContain(`"id":${ODD},"result":{}`);
    expect(text).toMatch(/"id":2,.*arguments\.limit is 9007199254740993/);
  });

  it('is refused on a pipe, which answers the id with all its digits', async () => {
    const lines = [
      `\u{feff}{"jsonrpc":"2.0","id":${ODD},"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
      `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"query_class","arguments":{"class_name":"Order","where":{"objectId":${ODD}}}}}`,
    ];
    const { stdout } = await runCommand(['stdio'], `${lines.join('\n')}\n`, { cwd: folder, env: {} });
    const [first, second] = stdout.trim().split('\n');
    expect(first).toContain(`"id":${ODD},"result":{"protocolVersion"`);
    expect(second).toMatch(/arguments\.where\.objectId is 9007199254740993/);
  });

  it.each([
    ['tool', 'query_class', `{"class_name":"Order","where":{"objectId":${ODD}}}`],
    ['explain', 'query_class', `{"class_name":"Order","where":{"objectId":${ODD}}}`, '--agent', 'default'],
  ])('is refused by parley %s', async (...args) => {
    const { code, stdout, stderr } = await runCommand(args, '', { cwd: folder, env: {} });
    expect(code).not.toBe(0);
    expect(stdout + stderr).toMatch(/where\.objectId is 9007199254740993/);
  });

  it('is an error of a configuration, of a variable in it, and of a seed', async () => {
    const configured = join(folder, 'large.yaml');
    writeFileSync(configured, `server: { maxBodySize: ${ODD} }\n`);
    const checked = await runCommand(['policy', 'check', '--config', configured], '', {
      cwd: folder,
      env: {},
    });
    // Its digits may be a key that lacks its quotes.
    expect(checked.stdout + checked.stderr).toMatch(
      /server\.maxBodySize: has more digits than a number holds exactly/,
    );
    expect(checked.stdout + checked.stderr).not.toContain('9007199254740993');
    writeFileSync(configured, `server:\n  maxBodySize: $\{SIZE}\n`);
    const read = await runCommand(['policy', 'check', '--config', configured], '', {
      cwd: folder,
      env: { SIZE: ODD },
    });
    expect(read.stdout + read.stderr).toMatch(
      /server\.maxBodySize: must be a whole number of at least 1, not text/,
    );
    writeFileSync(join(folder, 'seed.json'), `{"objects":{"Post":[{"objectId":"p1","likes":${ODD}}]}}`);
    writeFileSync(configured, 'database: { uri: embedded, seed: ./seed.json }\n');
    const seeded = await runCommand(['tool', 'get_all_schemas', '{}', '--config', configured], '', {
      cwd: folder,
      env: {},
    });
    expect(seeded.stdout + seeded.stderr).toContain('objects.Post[0].likes is 9007199254740993');
  });
});

describe('a member that an object has twice', () => {
  it.each([
    ['{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}'],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","meth\\u006fd":"tools/list"}'],
    [
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count_objects","arguments":{"class_name":"Order","where":{"total":1,"total":2}}}}',
    ],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","params":{"__proto__":1,"\\u005f_proto__":2}}'],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[{"":1,"":2}]}}'],
  ])('refuses the body, in whichever spelling: %s', async (body) => {
    const { status, body: answer } = await post(service, body);
    expect({ status, error: answer.error }).toEqual({
      status: 400,
      error: { code: -32700, message: 'Parse error: an object has a member twice' },
    });
  });
});

describe('a byte order mark', () => {
  it('is no part of a body, an argument, a configuration or a seed', async () => {
    const mark = '\u{feff}';
    const { status } = await post(service, `${mark}{"jsonrpc":"2.0","id":1,"method":"ping"}`);
    expect(status).toBe(200);
    writeFileSync(join(folder, 'marked-seed.json'), `${mark}{"objects":{"Post":[{"objectId":"p1"}]}}`);
    writeFileSync(
      join(folder, 'marked.yaml'),
      `${mark}database: { uri: embedded, seed: ./marked-seed.json }\npolicy: { unlistedClasses: allow }\n`,
    );
    const counted = await runCommand(
      ['tool', 'count_objects', `${mark}{"class_name":"Post"}`, '--config', join(folder, 'marked.yaml')],
      '',
      { cwd: folder, env: {} },
    );
    expect(JSON.parse(counted.stdout)).toMatchObject({ success: true, data: { count: 1 } });
  });
});
