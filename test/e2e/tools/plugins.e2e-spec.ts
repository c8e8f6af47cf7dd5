import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { POSTS_SEED, POSTS_CONFIG } from '../../fixtures/posts.fixture.js';
import { callTool, rpc, type Service, startAndFail, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const plugin = (name: string) =>
  fileURLToPath(new URL(`../../fixtures/plugins/${name}.mjs`, import.meta.url));
const key = { 'X-MCP-API-Key': 'k' };
const config = { ...POSTS_CONFIG, plugins: [plugin('counting'), plugin('delegating')] };
const env = { MCP_API_KEY: 'k' };

let service: Service;
beforeAll(async () => {
  service = await startService({ seed: POSTS_SEED, config, env });
});

describe('a plugin', () => {
  it('brings tools that are listed and called like any other', async () => {
    const { body } = await rpc(service, 'tools/list', {}, key);
    const { tools } = body['result'] as { tools: { name: string; _meta: object }[] };
    expect(tools.at(-1)).toMatchObject({ name: 'rows_of', _meta: { category: 'custom' } });
    expect(tools.at(-2)).toMatchObject({ name: 'research' });
    const { data } = await callTool(service, 'rows_of', { className: 'Post' }, key);
    expect(data['rows']).toBeGreaterThan(0);
  });

  it('reads through the same gates as every tool', async () => {
    const refused = await callTool(service, 'rows_of', { className: 'Contract' }, key);
    expect([refused.isError, refused.code]).toEqual([true, 'access_denied']);
  });

  it('injects sub-agents, the runner of tools and callbacks', async () => {
    const { text } = await callTool(service, 'research', {}, key);
    expect(JSON.parse(text)).toEqual({
      live: expect.any(Number),
      refused: 'tool_filtered',
      announced: expect.arrayContaining(['research', 'count_objects']),
    });
  });

  it('narrows a class of the file, never widens it', async () => {
    const { data } = await callTool(service, 'query_class', { class_name: 'Post', limit: 1 }, key);
    const [row = {}] = data['results'] as Record<string, unknown>[];
    expect(Object.keys(row).sort()).toEqual(['createdAt', 'objectId', 'title', 'updatedAt']);
  });

  it('is known to `parley explain`, which shows the gates and does not run its code', () => {
    const folder = makeFolder('plugins');
    writeFileSync(join(folder, 'seed.json'), JSON.stringify(POSTS_SEED));
    writeFileSync(
      join(folder, 'parley.yaml'),
      stringify({ ...config, database: { uri: 'embedded', seed: './seed.json' } }),
    );
    const [agent] = Object.keys(POSTS_CONFIG.agents);
    const cli = fileURLToPath(new URL('../../../dist/bundle/cli.js', import.meta.url));
    const explain = (args: string) =>
      spawnSync(process.execPath, [cli, 'explain', 'rows_of', args, '--agent', String(agent), '--json'], {
        cwd: folder,
        env: { ...process.env, ...env },
        encoding: 'utf8',
      });
    const run = explain('{"className":"Post"}');
    const misfit = explain('{"className":7}');
    expect(run.stderr).toBe('');
    expect(JSON.parse(run.stdout)).toMatchObject({ tool: 'rows_of', allowed: true });
    expect(JSON.parse(misfit.stdout)).toMatchObject({ allowed: false });
  });
});

describe('a plugin that cannot be used', () => {
  it('stops the start, each with its place and reason, together with the errors of the file', async () => {
    const { code, stderr } = await startAndFail({
      config: {
        ...POSTS_CONFIG,
        plugins: ['./nowhere.mjs', plugin('no-module'), plugin('broken'), '.'],
        unknownSection: true,
      },
      env,
    });
    expect(code).toBe(1);
    expect(stderr).toContain('plugins.0: no such file');
    expect(stderr).toContain('plugins.1: must export a Nest module as its default');
    expect(stderr).toContain('plugins.2: cannot be loaded: the reason it gives');
    expect(stderr).toContain('plugins.3: is not a file: name the module itself');
    expect(stderr).toContain('unknownSection: unknown key');
  });
});
