import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const tool = <T>(name: string) => import(pathToFileURL(join(root, 'tools', name)).href) as Promise<T>;
const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { name: string; version: string };

interface ServerJson {
  readonly packages: readonly {
    readonly identifier: string;
    readonly packageArguments: readonly { readonly value: string }[];
    readonly environmentVariables: readonly { readonly name: string; readonly isSecret?: boolean }[];
  }[];
  readonly remotes?: readonly { readonly url: string }[];
}

const input = { type: 'object', required: ['name'], properties: { isSecret: { type: 'boolean' } } };
const text = (maxLength: number) => ({ type: 'string', minLength: 1, maxLength });
/** What the registry asks of the members that are used, without members that it does not have. */
const FORM = {
  type: 'object',
  additionalProperties: false,
  required: ['$schema', 'name', 'description', 'version'],
  properties: {
    $schema: { const: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json' },
    name: { type: 'string', pattern: '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$', minLength: 3, maxLength: 200 },
    title: text(100),
    description: text(100),
    version: { type: 'string', pattern: '^\\d+\\.\\d+\\.\\d+', maxLength: 255 },
    packages: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['registryType', 'identifier', 'version', 'transport'],
        properties: {
          registryType: { const: 'npm' },
          identifier: { type: 'string' },
          version: { type: 'string', pattern: '^\\d+\\.\\d+\\.\\d+' },
          runtimeHint: { const: 'npx' },
          transport: { type: 'object', required: ['type'], properties: { type: { const: 'stdio' } } },
          packageArguments: {
            type: 'array',
            items: {
              type: 'object',
              required: ['type', 'value'],
              properties: { type: { const: 'positional' } },
            },
          },
          environmentVariables: {
            type: 'array',
            items: {
              ...input,
              properties: {
                ...input.properties,
                format: { enum: ['string', 'number', 'boolean', 'filepath'] },
              },
            },
          },
        },
      },
    },
    remotes: {
      type: 'array',
      items: {
        type: 'object',
        required: ['type', 'url'],
        properties: {
          type: { const: 'streamable-http' },
          url: { type: 'string', pattern: '^https?://[^\\s]+$' },
          headers: { type: 'array', items: input },
        },
      },
    },
  },
};

describe('server.json', () => {
  it('has the form that the registry asks for, of the package that there is', async () => {
    const { serverJson } = await tool<{ serverJson(options: object): ServerJson }>('server-json.mjs');
    const validate = new Ajv({ strict: false }).compile(FORM);
    for (const options of [
      { name: 'io.github.someone/parley' },
      { name: 'com.acme/parley', url: 'https://mcp.acme.com/mcp' },
    ]) {
      const written = serverJson(options);
      expect([validate(written), validate.errors]).toEqual([true, null]);
      expect(written).toMatchObject({
        version: own.version,
        packages: [{ identifier: own.name, version: own.version }],
      });
      expect(written.remotes?.map(({ url }) => url)).toEqual('url' in options ? [options.url] : undefined);
    }
  });

  it.each([
    [[], '--name: is needed'],
    [['--name', 'parley'], 'must be NAMESPACE/NAME'],
    [['--name', 'someone/parley'], 'with a namespace like io.github.OWNER'],
    [['--name', 'io.github.someone/parley', '--url', 'http://x/mcp'], 'must be an https address'],
  ])('is refused for %j', (args, message) => {
    const run = spawnSync(process.execPath, [join(root, 'tools/server-json.mjs'), ...args], {
      encoding: 'utf8',
    });
    expect([run.status, run.stdout]).toEqual([2, '']);
    expect(run.stderr).toContain(message);
  });

  it('starts a server with its arguments, and names variables that the service reads', async () => {
    const { serverJson } = await tool<{ serverJson(options: object): ServerJson }>('server-json.mjs');
    const [first] = serverJson({ name: 'io.github.someone/parley' }).packages;
    const client = new Client({ name: 'host', version: '1' });
    const elsewhere = makeFolder('host');
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [
          join(root, 'dist/bundle/cli.js'),
          ...(first?.packageArguments ?? []).map(({ value }) => value),
        ],
        cwd: elsewhere,
        stderr: 'ignore',
      }),
    );
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('query_class');
    await client.close();
    const reference = readFileSync(join(root, 'docs/reference/configuration.md'), 'utf8');
    for (const { name, isSecret } of first?.environmentVariables ?? []) {
      expect(reference).toContain(`\`${name}\``);
      expect(isSecret ?? false).toBe(name !== 'PARLEY_CONFIG');
    }
  });
});

interface Server {
  readonly name?: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly inputs?: readonly { readonly id: string }[];
}

/** As the editors read their links. */
function decoded(link: string): Server {
  const url = new URL(link);
  if (url.protocol === 'vscode:') return JSON.parse(decodeURIComponent(url.search.slice(1))) as Server;
  const config = Buffer.from(url.searchParams.get('config') ?? '', 'base64').toString('utf8');
  return { name: url.searchParams.get('name') ?? '', ...(JSON.parse(config) as Server) };
}

describe('links that editors open', () => {
  const page = readFileSync(join(root, 'docs/guide/connect.md'), 'utf8');
  const shown = [...page.matchAll(/^(?:vscode:|cursor:)\S+$/gm)].map(([link]) => link);

  it('are on the page as the tool writes them', async () => {
    const { editorLinks } = await tool<{ editorLinks(options?: object): { vsCode: string; cursor: string } }>(
      'editor-links.mjs',
    );
    const [plain, keyed] = [editorLinks(), editorLinks({ key: true })];
    expect(shown).toEqual([plain.vsCode, keyed.vsCode, plain.cursor, keyed.cursor]);
  });

  it('say what the files on the page say, and hold no key', () => {
    const files = [...page.matchAll(/```json\n(.*?)```/gs)].map(
      ([, content = '']) => parse(content) as object,
    );
    const [cursorFile, codeFile] = files as [
      { mcpServers: { parley: Server } },
      { inputs: object; servers: { parley: Server } },
    ];
    const servers = shown.map(decoded);
    expect(servers[1]).toEqual({ name: 'parley', inputs: codeFile.inputs, ...codeFile.servers.parley });
    expect(servers[3]).toEqual({ name: 'parley', ...cursorFile.mcpServers.parley });
    for (const { headers } of servers)
      for (const value of Object.values(headers ?? {}))
        expect(value).toMatch(/^Bearer \$\{(input|env):[\w-]+\}$/);
  });

  it('connect a client to the service, with the key where there is one', async () => {
    const KEY = 'key-of-an-editor-0123456789abcdef';
    for (const link of shown) {
      const server = decoded(link);
      const keyed = server.headers !== undefined;
      const rule = keyed ? { apiKey: KEY, agent: 'a' } : { anonymous: true, agent: 'a' };
      const service = await startService({
        seed: POSTS_SEED,
        config: {
          agents: { a: { permissions: 'readonly' } },
          auth: [rule],
          policy: { unlistedClasses: 'allow' },
        },
      });
      try {
        const at = server.url.replace('http://127.0.0.1:3001', service.origin);
        const headers = Object.fromEntries(
          Object.entries(server.headers ?? {}).map(([name, value]) => [name, value.replace(/\$\{.*\}/, KEY)]),
        );
        const client = new Client({ name: 'editor', version: '1' });
        await client.connect(new StreamableHTTPClientTransport(new URL(at), { requestInit: { headers } }));
        expect((await client.listTools()).tools.length).toBeGreaterThan(5);
        await client.close();
      } finally {
        await service.stop();
      }
    }
  });
});
