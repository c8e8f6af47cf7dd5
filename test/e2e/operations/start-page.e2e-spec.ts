import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { POSTS_CONFIG, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { type Service, startService } from '../../support/service.js';

describe('the page at the root of the service', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({
      seed: POSTS_SEED,
      config: {
        ...POSTS_CONFIG,
        auth: [{ apiKey: 'key-of-the-analyst', agent: 'analyst' }],
        server: { path: '/data/mcp', publicUrl: 'https://mcp.example.com/"<i>&' },
      },
    });
  });
  afterAll(() => service.stop());

  const get = (accept: string, headers: Record<string, string> = {}) =>
    fetch(`${service.origin}/`, { headers: { Accept: accept, ...headers } });

  it('shows browsers what this is, where to connect and whether it is ready, and loads nothing', async () => {
    const response = await get('text/html');
    const text = await response.text();
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    expect(text).toContain('This is an MCP server');
    expect(text).toContain('It is ready.');
    const policy = response.headers.get('content-security-policy') ?? '';
    const [, style = ''] = /<style>(.*?)<\/style>/.exec(text) ?? [];
    expect(policy).toContain(`style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`);
    expect(policy).toMatch(/^default-src 'none';.*frame-ancestors 'none'$/);
    expect(text).not.toMatch(/<script|<img|<link|style="|\son\w+=/);
  });

  it('writes what the configuration says as text', async () => {
    expect(await (await get('text/html')).text()).toContain(
      '<code>https://mcp.example.com/&quot;&lt;i&gt;&amp;</code>.',
    );
  });

  it('returns the same to programs, and nothing else', async () => {
    expect(await (await get('application/json')).json()).toEqual({
      name: 'Parley',
      protocol: 'MCP',
      version: expect.stringMatching(/^\d+\.\d+\.\d+/) as string,
      mcp: 'https://mcp.example.com/"<i>&',
      status: 'ready',
      links: { tools: '/tools', health: '/health', ready: '/ready' },
    });
  });

  it('leads to routes that exist', async () => {
    const { links } = (await (await get('*/*')).json()) as { links: Record<string, string> };
    for (const [name, path] of Object.entries(links))
      expect([
        name,
        (await fetch(`${service.origin}${path}`, { headers: { 'X-MCP-API-Key': 'key-of-the-analyst' } }))
          .status,
      ]).toEqual([name, 200]);
  });

  it('is not there when it is switched off, and leads to the console where there is one', async () => {
    const off = await startService({
      seed: POSTS_SEED,
      config: { ...POSTS_CONFIG, server: { startPage: false } },
    });
    expect((await fetch(`${off.origin}/`)).status).toBe(404);
    await off.stop();
    const console = await startService({
      seed: POSTS_SEED,
      config: {
        ...POSTS_CONFIG,
        agents: { chief: { permissions: 'readonly' } },
        auth: [{ apiKey: 'key-of-the-chief-operator-1', agent: 'chief' }],
        console: { operators: ['chief'] },
      },
    });
    const page = (await (await fetch(`${console.origin}/`)).json()) as { links: object };
    expect(page).toMatchObject({ mcp: '/mcp', links: { console: '/console' } });
    expect((await fetch(`${console.origin}/console`)).status).toBe(200);
    await console.stop();
  });
});
