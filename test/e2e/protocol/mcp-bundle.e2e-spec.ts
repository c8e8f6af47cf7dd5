import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeFolder } from '../../support/started.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const MCPB = join(root, 'tools/conformance/node_modules/@anthropic-ai/mcpb/dist/cli/cli.js');

interface Manifest {
  readonly server: {
    readonly mcp_config: {
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
    };
  };
  readonly user_config: Readonly<Record<string, { readonly default?: string }>>;
}

const run = (...args: readonly string[]) => {
  const done = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  expect([done.status, done.stderr]).toEqual([0, done.stderr]);
  return done.stdout;
};

describe('the MCP bundle', () => {
  const folder = makeFolder('mcpb');
  /** Where hosts start programs: no configuration lies there. */
  const elsewhere = makeFolder('host');
  let manifest: Manifest;

  beforeAll(() => {
    const archive = run(join(root, 'tools/mcpb.mjs')).trim().split('\n').at(-1) ?? '';
    run(MCPB, 'unpack', archive, folder);
    manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as Manifest;
  });

  /** Starts it as a host does: variables of the manifest are replaced by what the user entered. */
  async function connected(entered: Readonly<Record<string, string>>): Promise<Client> {
    const { args, env } = manifest.server.mcp_config;
    const filled = (text: string) =>
      text
        .replace('${__dirname}', folder)
        .replace(
          /\$\{user_config\.(\w+)\}/,
          (_, name: string) => entered[name] ?? manifest.user_config[name]?.default ?? '',
        );
    const client = new Client({ name: 'host', version: '1' });
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: args.map(filled),
        env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, filled(value)])),
        cwd: elsewhere,
        stderr: 'ignore',
      }),
    );
    return client;
  }

  it('serves the demo where the user enters nothing', async () => {
    const client = await connected({});
    const { structuredContent } = await client.callTool({
      name: 'count_objects',
      arguments: { class_name: 'Album' },
    });
    expect(structuredContent).toMatchObject({ count: expect.any(Number) });
    await client.close();
  });

  it('serves the configuration that the user chooses, to the key that the user enters', async () => {
    const configuration = join(folder, 'own.yaml');
    const seed = join(folder, 'demo/seed.json');
    writeFileSync(
      configuration,
      `database: { uri: embedded, seed: ${JSON.stringify(seed)} }
agents: { reader: { permissions: readonly, tools: { only: [count_objects] } } }
auth: [{ apiKey: '\${MCP_API_KEY}', agent: reader }]
policy: { unlistedClasses: allow }
`,
    );
    const client = await connected({ configuration, api_key: 'a-key-of-the-user' });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['count_objects']);
    await client.close();
    await expect(connected({ configuration })).rejects.toThrow(/closed/i);
  });
});
