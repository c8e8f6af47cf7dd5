import { type Browser, chromium, type Page } from 'playwright-core';
import { mkdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { POSTS_SEED, POSTS_CONFIG } from '../../fixtures/posts.fixture.js';
import { callTool, post, rpc, type Service, startService } from '../../support/service.js';

const VIEW = 'ui://parley/results';
const UI = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } };
const HOSTILE = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>\u202Egnp.exe';

/** What a host does for a view: a sandboxed frame, the handshake, the result. */
const HOST = `<!doctype html><body style="margin:0"><iframe id="f" sandbox="allow-scripts" style="border:0;width:100%;height:480px"></iframe><script>
  const frame = document.getElementById('f');
  window.heard = [];
  addEventListener('message', ({ source, data }) => {
    if (source !== frame.contentWindow) return;
    window.heard.push(data);
    if (data.method === 'ui/initialize')
      source.postMessage({ jsonrpc: '2.0', id: data.id, result: { protocolVersion: data.params.protocolVersion,
        hostInfo: { name: 'test', version: '1' }, hostCapabilities: {}, hostContext: window.context } }, '*');
    if (data.method === 'ui/notifications/initialized')
      source.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/tool-result', params: window.result }, '*');
  });
</script></body>`;

let service: Service;
let browser: Browser;
let html: string;
const key = { 'X-MCP-API-Key': 'key-of-reader' };

beforeAll(async () => {
  service = await startService({
    seed: POSTS_SEED,
    config: {
      ...POSTS_CONFIG,
      agents: { reader: { tenantId: 'acme' } },
      auth: [{ apiKey: 'key-of-reader', agent: 'reader' }],
    },
  });
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run'],
  });
  const { body } = await rpc(service, 'resources/read', { uri: VIEW }, key);
  html = (body['result'] as { contents: { text: string }[] }).contents[0]?.text ?? '';
});
afterAll(async () => {
  await browser.close();
  await service.stop();
});

const listed = async (capabilities: object) => {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  const request = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } };
  const headers = { ...key, 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' };
  const { body } = await post(service, JSON.stringify(request), headers);
  const { tools } = body['result'] as { tools: { name: string; _meta: Record<string, unknown> }[] };
  return new Map(tools.map(({ name, _meta }) => [name, _meta]));
};

interface Shown {
  readonly page: Page;
  readonly frame: ReturnType<Page['frameLocator']>;
}

async function show(result: object, theme = 'light', width = 720): Promise<Shown> {
  const page = await browser.newPage({ viewport: { width, height: 480 } });
  await page.setContent(HOST);
  await page.evaluate(
    ([shown, context, document]) => {
      Object.assign(globalThis, { result: shown, context });
      (globalThis as unknown as { f: { srcdoc: string } }).f.srcdoc = document as string;
    },
    [result, { theme }, html] as const,
  );
  const frame = page.frameLocator('#f');
  await frame.locator('main:not([aria-busy])').waitFor();
  return { page, frame };
}

const resultOf = async (name: string, args: object) => {
  const { data, text } = await callTool(service, name, args, key);
  return { content: [{ type: 'text', text }], structuredContent: data };
};

describe('the view of a tool', () => {
  it('is told to clients that show views, and to no others', async () => {
    const without = await listed({});
    const names = [...without].filter(([, meta]) => 'ui' in meta);
    expect(names).toEqual([]);
    const entries = await listed(UI);
    const shown = [...entries].filter(([, { ui }]) => ui !== undefined).map(([name]) => name);
    expect(shown.sort()).toEqual(['aggregate', 'group_by', 'group_by_date', 'query_class']);
    expect(entries.get('group_by')).toMatchObject({ ui: { resourceUri: VIEW }, 'ui/resourceUri': VIEW });
  });

  it('is a page of its own that asks for nothing, and in no listing', async () => {
    const { body } = await rpc(service, 'resources/read', { uri: VIEW }, key);
    expect(body['result']).toMatchObject({
      contents: [{ uri: VIEW, mimeType: 'text/html;profile=mcp-app', _meta: { ui: { csp: {} } } }],
    });
    expect(html).toMatch(/default-src 'none'.*script-src 'sha256-/);
    expect(html).not.toMatch(/https?:\/\/(?!www\.w3\.org\/2000\/svg)|unsafe-/);
    expect(Buffer.byteLength(html)).toBeLessThan(16_384);
    const list = await rpc(service, 'resources/list', {}, key);
    expect(list.text).not.toContain('ui://');
    const other = await rpc(service, 'resources/read', { uri: 'ui://parley/other' }, key);
    expect(other.body.error).toBeDefined();
  });
});

describe('in a sandboxed frame', () => {
  it('rows are a table that its headers sort, by number and by text', async () => {
    const { page, frame } = await show(await resultOf('query_class', { class_name: 'Post', limit: 5 }));
    const column = async (at: number) => frame.locator(`tbody td:nth-child(${at})`).allTextContents();
    const headers = await frame.locator('th').allTextContents();
    const likes = headers.indexOf('likes') + 1;
    await frame.getByRole('button', { name: 'likes' }).press('Enter');
    const ascending = (await column(likes)).map(Number);
    expect(ascending).toEqual([...ascending].sort((a, b) => a - b));
    await frame.getByRole('button', { name: 'likes' }).press('Enter');
    expect((await column(likes)).map(Number)).toEqual([...ascending].reverse());
    expect(await frame.locator(`th:nth-child(${likes})`).getAttribute('aria-sort')).toBe('descending');
    await page.close();
  });

  it('groups are bars and times a line, with the table a step away', async () => {
    const groups = await show(
      await resultOf('group_by', { class_name: 'Post', field: 'status', operation: 'count' }),
      'dark',
    );
    expect(await groups.frame.locator('rect.bar').count()).toBeGreaterThan(1);
    await groups.frame.getByRole('button', { name: 'Table' }).click();
    expect(await groups.frame.locator('tbody tr').count()).toBeGreaterThan(1);
    await groups.page.close();
    const months = ['2026-01', '2026-02', '2026-03'].map((month, at) => ({ key: month, value: at * 3 }));
    const times = await show({ structuredContent: { class_name: 'Post', groups: months } });
    expect(await times.frame.locator('polyline.run').count()).toBe(1);
    await times.page.close();
  });

  it('nothing that a row says runs, loads or turns the text around', async () => {
    const hostile = {
      class_name: HOSTILE,
      results: [
        { [HOSTILE]: HOSTILE, n: 1 },
        { [HOSTILE]: 'b', n: 2 },
      ],
    };
    const { page, frame } = await show({ structuredContent: hostile });
    const broken = await page.frames()[1]?.evaluate(() => (globalThis as { broken?: number }).broken);
    expect(broken).toBeUndefined();
    expect(await frame.locator('img, main script').count()).toBe(0);
    expect(await frame.locator('td').first().textContent()).toContain('\\u202egnp');
    await page.close();
  });

  it('reads the text where there is no structured content, and leaves to the text what is no list of rows', async () => {
    const text = await show({
      content: [
        {
          type: 'text',
          text: '{"results":[{"a":1},{"a":null,"b":{"_type":"Pointer","class":"X","id":"y"}}]}',
        },
      ],
    });
    expect(await text.frame.locator('tbody').textContent()).toBe('1——X y');
    await text.page.close();
    const error = await show({ content: [{ type: 'text', text: 'Denied' }], isError: true });
    expect(await error.frame.locator('main').textContent()).toContain('best read as text');
    await error.page.close();
  });

  it('tells the host its size, and fits a narrow one', async () => {
    const { page, frame } = await show(
      await resultOf('query_class', { class_name: 'Post', limit: 5 }),
      'light',
      320,
    );
    const wide = await frame.locator('body').evaluate((body) => body.scrollWidth > body.clientWidth);
    expect(wide).toBe(false);
    const heard = await page.evaluate(
      () => (globalThis as unknown as { heard: { method?: string }[] }).heard,
    );
    expect(heard.map(({ method }) => method)).toContain('ui/notifications/size-changed');
    await page.close();
  });
});

const screenshots = process.env['SCREENSHOTS'];
describe.runIf(screenshots)('pictures', () => {
  it('of both views in both themes', async () => {
    mkdirSync(screenshots as string, { recursive: true });
    const months = Array.from({ length: 24 }, (_, at) => ({
      key: `20${24 + Math.floor(at / 12)}-${String((at % 12) + 1).padStart(2, '0')}`,
      value: Math.round(20 + 15 * Math.sin(at)),
    }));
    const results: Record<string, object> = {
      rows: await resultOf('query_class', { class_name: 'Post', limit: 8 }),
      bars: await resultOf('group_by', { class_name: 'Post', field: 'status', operation: 'count' }),
      line: {
        structuredContent: {
          class_name: 'Order',
          operation: 'count',
          field: 'orderedAt',
          interval: 'month',
          groups: months,
        },
      },
    };
    for (const theme of ['light', 'dark'])
      for (const [name, result] of Object.entries(results)) {
        const { page } = await show(result, theme, theme === 'dark' ? 360 : 720);
        const picture = await page.screenshot({ path: `${screenshots}/${name}-${theme}.png` });
        expect(picture.length).toBeGreaterThan(1000);
        await page.close();
      }
  });
});
