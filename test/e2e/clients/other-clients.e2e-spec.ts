import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { NEWER_NODE } from '../../../tools/newer-node.mjs';
import { POSTS_SEED, POSTS_CONFIG, SECRET } from '../../fixtures/posts.fixture.js';
import { type Service, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const run = promisify(execFile);
const program = (path: string) => fileURLToPath(new URL(`../../clients/${path}`, import.meta.url));
const installed = (path: string) => program(`node_modules/${path}`);
const QUESTION = { class_name: 'Post', keys: ['title'], limit: 2 };
const REFUSED = { class_name: 'Contract' };

let service: Service;
const home = makeFolder('clients');
let env: Record<string, string>;
let toolsServed: string[];
beforeAll(async () => {
  env = { PATH: process.env['PATH'] ?? '', HOME: home };
  service = await startService({ seed: POSTS_SEED, config: POSTS_CONFIG });
  const served = await fetch(`${service.origin}/tools`);
  toolsServed = ((await served.json()) as { name: string }[]).map(({ name }) => name).sort();
});

const runClient = async (...args: string[]): Promise<string> => {
  const { stdout } = await run(NEWER_NODE, args, { env, maxBuffer: 16 * 1024 * 1024 });
  return stdout;
};

describe('the Inspector on the command line', () => {
  const launcher = installed('@modelcontextprotocol/inspector/clients/launcher/build/index.js');
  const inspect = async (...args: string[]) => {
    const stdout = await runClient(launcher, '--cli', service.url, ...args, '--format', 'json');
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
    expect(result['tools']).toHaveLength(toolsServed.length);
  });
});

describe('mcp-remote', () => {
  it('bridges a host that only speaks stdio', async () => {
    const client = new Client({ name: 'scenario', version: '1.0.0' });
    const bridge = ['--allow-http', '--transport', 'http-only'];
    const transport = new StdioClientTransport({
      command: NEWER_NODE,
      args: [installed('mcp-remote/dist/proxy.js'), service.url, ...bridge],
      env,
      stderr: 'ignore',
    });
    await client.connect(transport as never);
    try {
      const { tools } = await client.listTools();
      expect(tools).toHaveLength(toolsServed.length);
      const answer = await client.callTool({ name: 'query_class', arguments: QUESTION });
      expect(answer.structuredContent).toMatchObject({ class_name: 'Post' });
    } finally {
      await client.close();
    }
  });
});

describe('mcporter', () => {
  const mcporter = (command: string, ...args: string[]) =>
    runClient(installed('mcporter/dist/cli.js'), command, '--http-url', service.url, '--allow-http', ...args);
  const call = async (question: unknown) => {
    const args = ['query_class', '--args', JSON.stringify(question), '--output', 'json'];
    return mcporter('call', ...args).catch((failed: { stdout: string }) => failed.stdout);
  };

  it('lists the tools', async () => {
    const { tools } = JSON.parse(await mcporter('list', '--json')) as { tools: { name: string }[] };
    expect(tools.map(({ name }) => name).sort()).toEqual(toolsServed);
  });

  it('shows rows, and the text of a refusal', async () => {
    expect(JSON.parse(await call(QUESTION))).toMatchObject({ class_name: 'Post', result_count: 2 });
    expect(await call(REFUSED)).toContain("Class 'Contract' is not accessible to this agent");
  });
});

describe.each<[client: string, name: string]>([
  ["the AI SDK's client", 'ai-sdk'],
  ["LangChain's MCP adapters", 'langchain'],
  ["OpenAI's agents", 'openai-agents'],
  ["Mastra's client", 'mastra'],
])('%s', (_, name) => {
  const call = async (question: unknown, tool = 'query_class') => {
    const args = [name, service.url, tool, JSON.stringify(question)];
    return JSON.parse(await runClient(program('call-tool.mjs'), ...args)) as {
      names: string[];
      answer: unknown;
    };
  };

  it('lists every tool and hands the rows of a call to its model', async () => {
    const { names, answer } = await call(QUESTION);
    expect(names.sort()).toEqual(toolsServed);
    const text = JSON.stringify(answer);
    expect(text).toContain('result_count');
    expect(text).not.toContain(SECRET);
  });

  it.each([
    ['group_by', { field: 'archived' }, 'group_count'],
    ['group_by', { field: 'tags', operation: 'max', value_field: 'tags' }, 'group_count'],
    ['distinct', { field: 'likes' }, 'values'],
  ])('hands what %s answers of any type to its model', async (tool, args, member) => {
    const { answer } = await call({ class_name: 'Post', ...args }, tool);
    expect(JSON.stringify(answer)).toContain(member);
  });

  it('hands the refusal of a hidden class to its model', async () => {
    const { answer } = await call(REFUSED);
    expect(JSON.stringify(answer)).toMatch(/Contract.*not accessible|allowed values|expected schema/);
  });
});
