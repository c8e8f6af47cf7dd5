import { mkdirSync, readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { POSTS_SEED, POSTS_CONFIG } from '../../fixtures/posts.fixture.js';
import { openBrowser } from '../../support/browser.js';
import { askModern } from '../../support/modern-call.js';
import { callTool, rpc, type Service, startService } from '../../support/service.js';

const VIEW = 'ui://parley/results';
const UI = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } };
const HOSTILE = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>\u202Egnp.exe';

/** What a host does for a view: a sandboxed frame, the handshake, the result. */
const HOST = `<!doctype html><body style="margin:0"><iframe id="f" style="border:0;width:100%;height:480px"></iframe><script>
  const frame = document.getElementById('f');
  window.heard = [];
  addEventListener('message', ({ source, data }) => {
    if (source !== frame.contentWindow) return;
    window.heard.push(data);
    if (data.method === 'ui/initialize')
      source.postMessage({ jsonrpc: '2.0', id: data.id, result: { protocolVersion: data.params.protocolVersion,
        hostInfo: { name: 'test', version: '1' }, hostCapabilities: window.capabilities, hostContext: window.context } }, '*');
    if (data.method === 'ui/notifications/size-changed') frame.style.height = data.params.height + 'px';
    if (data.method === 'ui/download-file') source.postMessage({ jsonrpc: '2.0', id: data.id, result: {} }, '*');
    if (data.method === 'ui/notifications/initialized')
      source.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/tool-result', params: window.result }, '*');
  });
</script></body>`;

const YEAR = {
  class_name: 'Order',
  operation: 'sum',
  field: 'orderedAt',
  value_field: 'total',
  interval: 'day',
  timezone: 'Europe/Berlin',
  groups: Array.from({ length: 365 }, (_, day) => ({
    key: new Date(Date.UTC(2025, 0, 1 + day)).toISOString().slice(0, 10),
    value: Math.round(50 + 30 * Math.sin(day / 58) + 15 * Math.sin(day * 7.3)),
  })),
};

const REMARKS =
  'Rings the bell twice, takes the parcel at the side door, and asks for a receipt that names the project. ';
const ORDERS = {
  class_name: 'Order',
  pagination: { has_more: true },
  results: Array.from({ length: 14 }, (_, at) => ({
    number: `ORD-2026-${String(at).padStart(5, '0')}`,
    customer: at === 3 ? '=HYPERLINK("http://x")' : `${['Ann Arbor', 'Bob Stone', 'Cleo Quist'][at % 3]}`,
    total: at === 3 ? 0.5 : Math.round(1234567.89 * 100 * (1 + at)) / 100,
    paidAt: at % 4 === 2 ? null : `2026-01-${String(26 - at).padStart(2, '0')}T14:49:00.000Z`,
    due: `2026-03-${String(at + 1).padStart(2, '0')}T00:00:00.000Z`,
    remarks: at % 5 === 0 ? REMARKS.repeat(2) : 'none',
  })),
};

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
  browser = await openBrowser();
  const { body } = await rpc(service, 'resources/read', { uri: VIEW }, key);
  html = (body['result'] as { contents: { text: string }[] }).contents[0]?.text ?? '';
});

const listed = async (capabilities: object) => {
  const { body } = await askModern(service, 'tools/list', {}, key, capabilities);
  const { tools } = body['result'] as { tools: { name: string; _meta: Record<string, unknown> }[] };
  return new Map(tools.map(({ name, _meta }) => [name, _meta]));
};

interface Shown {
  readonly page: Page;
  readonly frame: ReturnType<Page['frameLocator']>;
}

interface HostOptions {
  readonly theme?: string;
  readonly width?: number;
  readonly context?: object;
  readonly capabilities?: object;
  readonly sandbox?: string;
}

async function show(result: object, options: HostOptions = {}): Promise<Shown> {
  const { theme = 'light', width = 720, context, capabilities = {}, sandbox = 'allow-scripts' } = options;
  const page = await browser.newPage({ viewport: { width, height: 480 } });
  await page.setContent(HOST);
  await page.evaluate(
    ([shown, hostContext, hostCapabilities, allowed, document]) => {
      Object.assign(globalThis, { result: shown, context: hostContext, capabilities: hostCapabilities });
      const { f } = globalThis as unknown as { f: { srcdoc: string; sandbox: string } };
      f.sandbox = allowed;
      f.srcdoc = document;
    },
    [
      result,
      { theme, locale: 'en-GB', timeZone: 'Europe/Berlin', ...context },
      capabilities,
      sandbox,
      html,
    ] as const,
  );
  const frame = page.frameLocator('#f');
  await frame.locator('main:not([aria-busy])').waitFor();
  return { page, frame };
}

/** What the host received from the view. */
const received = async (page: Page, method: string): Promise<readonly Record<string, unknown>[]> => {
  const messages = await page.evaluate(
    () => (globalThis as unknown as { heard: { method?: string; params?: object }[] }).heard,
  );
  return messages.filter((message) => message.method === method).map(({ params }) => ({ ...params }));
};

const resultOf = async (name: string, args: object) => {
  const { data, text } = await callTool(service, name, args, key);
  return { content: [{ type: 'text', text }], structuredContent: data };
};

describe('the view of a tool', () => {
  it('is named to clients that show views, and to no others', async () => {
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
    expect(Buffer.byteLength(html)).toBeLessThan(25_000);
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
      { theme: 'dark' },
    );
    const bars = await groups.frame.locator('rect.bar').count();
    expect(bars).toBeGreaterThan(1);
    const values = await groups.frame.locator('.bars b').allTextContents();
    expect(values.filter((value) => /^\d+$/.test(value))).toHaveLength(bars);
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

  it('reads the text where there is no structured content, and shows the text that holds no list of rows', async () => {
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
    const plain = await show({ content: [{ type: 'text', text: HOSTILE }] });
    expect(await plain.frame.locator('pre').textContent()).toBe(HOSTILE.replace('\u202E', '\\u202e'));
    await plain.page.close();
  });

  it('a refused call says what happened and what to write instead', async () => {
    const { body } = await rpc(
      service,
      'tools/call',
      { name: 'query_class', arguments: { class_name: 'Post', where: { internalNote: 'x' } } },
      key,
    );
    const { page, frame } = await show(body['result'] as object);
    const said = (await frame.getByRole('alert').textContent()) ?? '';
    expect(said).toContain('The call was refused');
    expect(said).toContain('access_denied');
    expect(said).toContain('internalNote');
    const allowed = await frame.locator('.names code').allTextContents();
    expect(allowed).toContain('title');
    expect(allowed).not.toContain('internalNote');
    await page.close();
    const hostile = await show({
      isError: true,
      content: [{ type: 'text', text: HOSTILE }],
      _meta: {
        'parse.error_code': HOSTILE,
        'parse.details': { suggested_rewrite: HOSTILE, allowed_fields: [HOSTILE] },
      },
    });
    expect(await hostile.frame.locator('main img, main script').count()).toBe(0);
    await hostile.page.close();
  });

  it('a year of days is a line with round ticks, and the arrow keys show the value of a day', async () => {
    const { page, frame } = await show({ structuredContent: YEAR });
    expect(await frame.locator('polyline.run').count()).toBeGreaterThan(0);
    const ticks = await frame.locator('svg text').allTextContents();
    expect(ticks).toEqual(expect.arrayContaining(['0', '50', '100', 'Jan 2025', 'Apr']));
    expect(await frame.locator('output').textContent()).toBe('1 Jan 2025 – 31 Dec 2025');
    await frame.locator('figure svg').press('ArrowRight');
    expect(await frame.locator('output').textContent()).toBe(`1 Jan 2025: ${YEAR.groups[0]?.value}`);
    expect(await frame.locator('section > .note').textContent()).toBe(
      'Grouped by the calendar of Europe/Berlin.',
    );
    await page.close();
  });

  it('a series longer than the page is wide keeps its peak, and says that not all is drawn', async () => {
    const hours = Array.from({ length: 3000 }, (_, hour) => ({
      key: new Date(Date.UTC(2025, 0, 1, hour)).toISOString().slice(0, 16).replace('T', ' '),
      value: hour === 1234 ? 900 : hour % 24,
    }));
    const { page, frame } = await show({ structuredContent: { groups: hours } });
    expect(await frame.locator('output').textContent()).toMatch(/ · 6\d\d of 3000 points are drawn$/);
    const drawn = (await frame.locator('polyline.run').getAttribute('points'))?.split(' ') ?? [];
    const heights = drawn.map((point) => Number(point.split(',')[1]));
    // 900 of 0 to 1000.
    expect(Math.min(...heights)).toBeLessThan(40);
    await page.close();
  });

  it('periods without a value interrupt the line', async () => {
    const groups = ['2026-01-01', '2026-01-02', '2026-01-05', '2026-01-06'].map((day, value) => ({
      key: day,
      value,
    }));
    const { page, frame } = await show({ structuredContent: { groups } });
    expect(await frame.locator('polyline.run').count()).toBe(2);
    await page.close();
  });

  it.each([700, 390])('no number, date or state is broken over lines at %d pixels', async (width) => {
    const { page, frame } = await show({ structuredContent: ORDERS }, { width });
    const heights = await frame.locator('td:not(.text)').evaluateAll((cells) =>
      cells.map((cell) => {
        const range = cell.ownerDocument.createRange();
        range.selectNodeContents(cell);
        return range.getBoundingClientRect().height;
      }),
    );
    expect(Math.max(...heights)).toBeLessThan(24);
    const text = (await frame.locator('tbody').textContent()) ?? '';
    expect(text).toContain('1,234,567.89');
    expect(text).toContain('26 Jan 2026, 15:49');
    expect(text).not.toMatch(/\d{2}:\d{2}\.\d{3}|T\d{2}:/);
    expect(await frame.locator('section > .note').textContent()).toContain('Times are in Europe/Berlin.');
    await page.close();
  });

  it('writes dates and numbers in the language and time zone that the host names', async () => {
    const context = { locale: 'de-DE', timeZone: 'UTC' };
    const { page, frame } = await show({ structuredContent: ORDERS }, { context });
    const text = (await frame.locator('tbody').textContent()) ?? '';
    expect(text).toContain('1.234.567,89');
    expect(text).toContain('26.01.2026, 14:49');
    await page.close();
  });

  it('gives a file of the rows as they are sorted, by the host where it takes files', async () => {
    const { page, frame } = await show({ structuredContent: ORDERS }, { capabilities: { downloadFile: {} } });
    await frame.getByRole('button', { name: 'total' }).click();
    await frame.getByRole('button', { name: 'CSV' }).click();
    await frame.getByText('Saved as Order.csv.').waitFor();
    const [request] = await received(page, 'ui/download-file');
    const [content] = (request?.['contents'] ?? []) as { resource: { uri: string; text: string } }[];
    expect(content?.resource).toMatchObject({ uri: 'file:///Order.csv', mimeType: 'text/csv' });
    const lines = content?.resource.text.split('\r\n') ?? [];
    expect(lines[0]).toBe('number,customer,total,paidAt,due,remarks');
    expect(lines[1]).toContain(`"'=HYPERLINK(""http://x"")"`);
    await page.close();
  });

  it('saves a file itself where the sandbox lets it, and lets the reader copy the text where it does not', async () => {
    const open = await show({ structuredContent: ORDERS }, { sandbox: 'allow-scripts allow-downloads' });
    const download = open.page.waitForEvent('download');
    await open.frame.getByRole('button', { name: 'CSV' }).click();
    const file = await download;
    expect(file.suggestedFilename()).toBe('Order.csv');
    const saved = readFileSync(await file.path(), 'utf8');
    await open.page.close();

    const closed = await show({ structuredContent: ORDERS });
    await closed.frame.getByRole('button', { name: 'CSV' }).click();
    const text = closed.frame.getByRole('textbox', { name: 'CSV' });
    expect((await text.inputValue()).replaceAll('\n', '\r\n')).toBe(saved);
    await closed.frame.getByRole('button', { name: 'Copy' }).click();
    expect(await closed.frame.getByRole('status').textContent()).toBe('Copied.');
    await closed.page.close();
  });

  it('reports its size to the host, and fits a narrow one', async () => {
    const { page, frame } = await show(await resultOf('query_class', { class_name: 'Post', limit: 5 }), {
      width: 320,
    });
    const wide = await frame.locator('body').evaluate((body) => body.scrollWidth > body.clientWidth);
    expect(wide).toBe(false);
    const sizes = await received(page, 'ui/notifications/size-changed');
    expect(sizes).not.toEqual([]);
    // The host follows each size: what depended on the height of the frame would never settle.
    await page.waitForTimeout(100);
    expect((await received(page, 'ui/notifications/size-changed')).length).toBeLessThan(sizes.length + 2);
    expect(sizes.at(-1)?.['height']).toBeGreaterThan(200);
    await page.close();
  });
});

const screenshots = process.env['SCREENSHOTS'];
describe.runIf(screenshots)('pictures', () => {
  it('of each kind of result, in both themes and narrow', async () => {
    mkdirSync(screenshots as string, { recursive: true });
    const genres = [
      'rock',
      'soul',
      'jazz',
      'a very long name of a genre that nobody can remember',
      'folk',
      '日本の音楽',
      'null',
    ];
    const days = YEAR.groups.filter((_, day) => day % 37 < 25).slice(0, 90);
    const results: Record<string, object> = {
      rows: { structuredContent: ORDERS },
      posts: await resultOf('query_class', { class_name: 'Post', limit: 8 }),
      bars: await resultOf('group_by', { class_name: 'Post', field: 'status', operation: 'count' }),
      genres: {
        structuredContent: {
          class_name: 'Album',
          operation: 'count',
          field: 'genre',
          groups: genres.map((genre, at) => ({ key: genre, value: at === 4 ? -1200 : 12000 - at * 1713 })),
        },
      },
      year: { structuredContent: YEAR },
      gaps: { structuredContent: { ...YEAR, groups: days } },
      hours: {
        structuredContent: {
          class_name: 'Play',
          groups: Array.from({ length: 48 }, (_, hour) => ({
            key: `2025-03-0${1 + Math.floor(hour / 24)} ${String(hour % 24).padStart(2, '0')}:00`,
            value: 980 + (hour % 7),
          })),
        },
      },
      refused: {
        isError: true,
        content: [
          {
            type: 'text',
            text: 'where field \'ssn\' ("ssn") outside agent_fields allowlist. Allowed: title, artist',
          },
        ],
        _meta: {
          'parse.error_code': 'access_denied',
          'parse.retry_after': 3,
          'parse.details': {
            kind: 'field_denied',
            denied_field: 'ssn',
            allowed_fields: ['title', 'artist', 'genre'],
            suggested_rewrite: 'name title in keys',
          },
        },
      },
      empty: { structuredContent: { class_name: 'Post', results: [] } },
      text: { content: [{ type: 'text', text: 'Dry run: nothing was done.' }] },
    };
    for (const [name, result] of Object.entries(results))
      for (const [theme, width] of [
        ['light', 720],
        ['dark', 720],
        ['light', 390],
      ] as const) {
        const { page, frame } = await show(result, { theme, width });
        if (name === 'rows') await frame.getByRole('button', { name: 'CSV' }).click();
        // The host follows the height of the page.
        await page.waitForTimeout(300);
        const picture = await page.screenshot({
          path: `${screenshots}/${name}-${theme}-${width}.png`,
          fullPage: true,
        });
        expect(picture.length).toBeGreaterThan(1000);
        await page.close();
      }
  });
});
