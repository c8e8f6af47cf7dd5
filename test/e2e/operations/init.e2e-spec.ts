import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Ajv } from 'ajv';
import { Decimal128, type Document, MongoClient, ObjectId } from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { makeFolder } from '../../support/started.js';
import { runCommand } from '../../support/terminal.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const COMMANDS = join(root, 'dist/bundle/cli.js');

let folder: string;
let server: EmbeddedMongo;
let uri: string;

beforeAll(async () => {
  server = await EmbeddedMongo.start();
  uri = server.uri.replace('/?', '/shop?');
  const client = await MongoClient.connect(uri);
  await client
    .db()
    .collection('orders')
    .insertMany([{ number: 1, email: 'a@b.org' }, { number: 2 }]);
  await client.close();
});
afterAll(() => server.close());
beforeEach(() => {
  folder = makeFolder('init');
});

/** Runs a command to its end, in an empty folder. */
function parley(args: string[], env: Record<string, string> = {}) {
  return runCommand(args, '', { cwd: folder, env });
}

const file = () => join(folder, 'parley.yaml');
const KEY = 'Zx81kQpL0vTn5RbWc3Yd7HgF2sAe9MuJ';

/** Serves the file in the folder, and connects the official client. */
async function served(env: Record<string, string>) {
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [COMMANDS, 'serve', '--port', '0'], {
    cwd: folder,
    env: { PATH, ...env },
  });
  const url = await new Promise<string>((resolve, reject) => {
    let output = '';
    const read = (chunk: Buffer) => {
      output += chunk.toString();
      const [, found] = /Parley listening on (http[^\s"]+)/.exec(output) ?? [];
      if (found !== undefined) resolve(found);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('close', () => reject(new Error(output)));
  });
  const client = new Client({ name: 'init', version: '1' });
  const headers = { 'x-mcp-api-key': KEY };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }) as never,
  );
  return {
    call: async (name: string, args: Record<string, unknown>) => {
      const result = await client.callTool({ name, arguments: args });
      return JSON.stringify(result);
    },
    close: async () => {
      await client.close();
      const ended = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGTERM');
      await ended;
    },
  };
}

describe('parley init', () => {
  it('writes parley.yaml, and says what to do next', async () => {
    const { code, stderr, stdout } = await parley(['init', '--uri', uri]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toContain('set MCP_API_KEY, then run: parley policy check');
    expect(parse(readFileSync(file(), 'utf8'))).toMatchObject({
      database: { uri, name: 'shop', storage: 'plain' },
      policy: { classes: { Order: { collection: 'orders', fields: ['number'] } } },
    });
  });

  it('names the JSON Schema of the file for editors, and puts it where the file says', async () => {
    const schemaOf = (name: string) =>
      /^# yaml-language-server: \$schema=(\S+)$/m.exec(readFileSync(join(folder, name), 'utf8'))?.[1] ?? '';
    expect((await parley(['init', '--uri', uri, '--out', 'beside.yaml'])).code).toBe(0);
    expect(schemaOf('beside.yaml')).toBe('./parley.schema.json');
    const schema = readFileSync(join(folder, schemaOf('beside.yaml')), 'utf8');
    expect(schema).toBe((await parley(['schema'])).stdout);
    expect(schema).toBe(readFileSync(join(root, 'dist/parley.schema.json'), 'utf8'));
    const validate = new Ajv({ allErrors: true, strict: false }).compile(JSON.parse(schema));
    expect([validate(parse(readFileSync(join(folder, 'beside.yaml'), 'utf8'))), validate.errors]).toEqual([
      true,
      null,
    ]);
    const installed = join(folder, 'node_modules/@parley/server');
    mkdirSync(installed, { recursive: true });
    writeFileSync(join(installed, 'parley.schema.json'), schema);
    rmSync(join(folder, 'parley.schema.json'));
    expect((await parley(['init', '--uri', uri, '--out', 'installed.yaml'])).code).toBe(0);
    expect(schemaOf('installed.yaml')).toBe('./node_modules/@parley/server/parley.schema.json');
    expect(existsSync(join(folder, 'parley.schema.json'))).toBe(false);
  });

  it('never writes over a file', async () => {
    writeFileSync(file(), 'mine');
    const { code, stderr } = await parley(['init', '--uri', uri]);
    expect(code).toBe(1);
    expect(stderr).toContain('is never overwritten');
    expect(readFileSync(file(), 'utf8')).toBe('mine');
    expect((await parley(['init', '--uri', uri, '--out', 'other.yaml'])).code).toBe(0);
    expect(existsSync(join(folder, 'other.yaml'))).toBe(true);
  });

  it('prints it for --out -, and writes no file', async () => {
    writeFileSync(file(), 'mine');
    const { code, stdout } = await parley(['init', '--uri', uri, '--out', '-']);
    expect(code).toBe(0);
    expect(parse(stdout)).toMatchObject({ agents: { reader: { permissions: 'readonly' } } });
    expect(readFileSync(file(), 'utf8')).toBe('mine');
  });

  it('refers to the environment where it took the URI from there', async () => {
    const { code, stdout, stderr } = await parley(['init', '--out', '-'], { MONGODB_URI: uri });
    expect(code).toBe(0);
    expect(parse(stdout)).toMatchObject({ database: { uri: '${MONGODB_URI}', name: 'shop' } });
    expect(stdout).not.toContain(uri);
    expect(stderr).toContain('set MONGODB_URI and MCP_API_KEY');
  });

  it.each<[string, string[], number, string]>([
    ['no database', [], 2, '--uri: is needed'],
    ['another protocol', ['--uri', 'http://127.0.0.1/shop'], 2, 'must be mongodb://HOST/DATABASE'],
    ['a URI without a database', ['--uri', 'mongodb://127.0.0.1/'], 2, 'names no database'],
    ['a database that does not answer', ['--uri', 'mongodb://127.0.0.1:1/shop'], 1, 'could not be read'],
    [
      'a folder that is not there',
      ['--uri', 'URI', '--out', 'no/such/file.yaml'],
      1,
      'cannot be written (ENOENT)',
    ],
    ['an empty database', ['--uri', 'EMPTY'], 1, 'holds no collection: check the name of the database'],
    [
      'a password that is refused',
      ['--uri', 'mongodb://someone:pass-word@HOST/shop'],
      1,
      'could not be read',
    ],
  ])('fails with a reason for %s, and writes nothing', async (_title, args, exit, reason) => {
    const [, host = ''] = /\/\/([^/]+)\//.exec(uri) ?? [];
    const given = args.map((arg) =>
      arg
        .replace(/^URI$/, uri)
        .replace(/^EMPTY$/, uri.replace('shop', 'empty'))
        .replace('HOST', host),
    );
    const { code, stdout, stderr } = await parley(['init', ...given]);
    expect({ code, stdout }).toEqual({ code: exit, stdout: '' });
    expect(stderr).toContain(reason);
    expect(stderr).not.toContain('pass-word');
    expect(existsSync(file())).toBe(false);
  });
});

describe('the file as it is written', () => {
  it('passes the checks, starts, and serves what it lists and nothing else', async () => {
    const library = uri.replace('shop', 'library');
    const client = await MongoClient.connect(library);
    const author = new ObjectId();
    await client
      .db()
      .collection('authors')
      .insertOne({ _id: author, name: 'Ada', email: 'ada-value@example.org' });
    await client
      .db()
      .collection('logs')
      .insertOne({ _id: { a: 1 } as never, text: 'log-value' });
    await client
      .db()
      .createCollection('recent_books', { viewOn: 'books', pipeline: [{ $match: { year: { $gt: 1900 } } }] });
    await client
      .db()
      .createCollection('addresses', { viewOn: 'authors', pipeline: [{ $set: { a: '$email' } }] });
    const book = {
      author_id: author,
      price: Decimal128.fromString('12.50'),
      created_at: new Date(),
      tokens: ['token-value'],
    };
    await client
      .db()
      .collection<Document & { _id: number }>('books')
      .insertMany([
        { _id: 1, ...book, title: 'One', year: 1850 },
        { _id: 2, ...book, title: 'Two', year: 1950 },
      ]);
    await client.close();
    const env = { MONGODB_URI: library, MCP_API_KEY: KEY };
    expect((await parley(['init'], env)).code).toBe(0);
    const checked = await parley(['policy', 'check', '--json'], env);
    expect({
      code: checked.code,
      faults: (JSON.parse(checked.stdout) as { faults: unknown }).faults,
    }).toEqual({
      code: 0,
      faults: [],
    });
    const doctor = JSON.parse((await parley(['doctor', '--json'], env)).stdout) as {
      findings: { check: string; level: string }[];
    };
    expect(doctor.findings.filter(({ level }) => level === 'fail')).toEqual([]);
    expect(doctor.findings).toContainEqual(expect.objectContaining({ check: 'classes', level: 'ok' }));
    const service = await served(env);
    try {
      const where = {
        author: { $inQuery: { className: 'Author', where: { name: 'Ada' } } },
        year: { $lt: 1900 },
      };
      const found = await service.call('query_class', { class_name: 'Book', where, include: ['author'] });
      for (const shown of ['One', '12.50', 'Ada']) expect(found).toContain(shown);
      const recent = await service.call('query_class', { class_name: 'RecentBook' });
      expect(recent).toContain('Two');
      const schemas = await service.call('get_all_schemas', {});
      const logs = await service.call('query_class', { class_name: 'logs' });
      const addresses = await service.call('query_class', { class_name: 'addresses' });
      expect(logs).toContain('invalid_argument');
      for (const answer of [found, recent, schemas, logs, addresses]) {
        for (const hidden of ['ada-value', 'log-value', 'token-value']) expect(answer).not.toContain(hidden);
        expect(answer).not.toMatch(/\b(email|tokens|author_id)\b/);
      }
    } finally {
      await service.close();
    }
  });
});
