import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { openBrowser } from '../../support/browser.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const tool = join(root, 'tools/docs-site');
const site = join(tool, 'dist/site');
const ORIGIN = 'http://docs.test';
const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.png': 'image/png',
};

let browser: Browser;
/** Requests to any other host, and errors of pages. */
const wrong: string[] = [];

beforeAll(async () => {
  await promisify(execFile)(process.execPath, ['tools/docs.mjs'], { cwd: root });
  browser = await openBrowser();
}, 300_000);

/** A page over the built files; whatever else it asks for is refused. */
async function open(
  path: string,
  options: { width?: number; colorScheme?: 'light' | 'dark' } = {},
): Promise<Page> {
  const { width = 1280, colorScheme = 'light' } = options;
  const page = await browser.newPage({ viewport: { width, height: 800 }, colorScheme });
  page.on('pageerror', (error) => wrong.push(`${path}: ${error.message}`));
  await page.route('**/*', (route) => {
    const { origin, pathname } = new URL(route.request().url());
    const file = join(site, pathname.endsWith('/') ? `${pathname}index.html` : pathname);
    if (origin === ORIGIN && existsSync(file))
      return route.fulfill({ contentType: TYPES[extname(file)] ?? 'text/plain', body: readFileSync(file) });
    wrong.push(`${path}: ${route.request().url()}`);
    return route.abort();
  });
  await page.goto(ORIGIN + path);
  return page;
}

/** What people look for, and the page that must come first. */
const QUESTIONS: Record<string, string> = {
  'rate limit': 'reference/limits',
  tenant: 'guide/policy',
  approve: 'guide/approvals',
  'hide a column': 'guide/masking',
  'test a policy': 'guide/policy',
  'get started': 'guide/start',
  Claude: 'guide/connect',
  NestJS: 'guide/module',
  Mongoose: 'guide/plain-mongodb',
  'write a tool': 'guide/writing-tools',
  export: 'guide/exports',
  'sub-agent': 'guide/agents',
  idempotency: 'guide/tools',
  access_denied: 'reference/refusals',
  'environment variables': 'reference/configuration',
  replicas: 'operations/replicas',
  'Redis down': 'operations/replicas',
  OAuth: 'operations/oauth',
  audit: 'operations/audit',
  metrics: 'operations/observability',
  Helm: 'operations/deployment',
  nginx: 'operations/load-balancer',
  reload: 'operations/reload',
  upgrade: 'operations/upgrade',
  backup: 'operations/backup',
  'rotate key': 'operations/keys',
  alert: 'operations/runbook',
  'MongoDB is down': 'operations/runbook',
  'slow queries': 'operations/runbook',
  'agent calls in a loop': 'operations/runbook',
  'configuration was refused': 'operations/runbook',
  'event loop blocked': 'operations/runbook',
  'replicas serve different policies': 'operations/runbook',
  'who deleted a row': 'operations/audit',
  'log format': 'operations/observability',
  OpenTelemetry: 'operations/observability',
  'health check': 'operations/observability',
  'graceful shutdown': 'operations/replicas',
  'personal data': 'guide/masking',
  Kubernetes: 'operations/deployment',
  'Docker image': 'operations/deployment',
  'change the port': 'operations/deployment',
  'single sign-on': 'operations/console',
  'new version': 'operations/upgrade',
  rollback: 'operations/upgrade',
  'suspend an agent': 'operations/console',
  'leaked key': 'operations/keys',
  'restore a backup': 'operations/backup',
  'revoke a token': 'operations/oauth',
  'undo a change': 'guide/changes',
  '429 too many requests': 'reference/refusals',
  maskin: 'guide/masking',
};

describe('the documentation site', () => {
  it('finds a page by a word', async () => {
    const page = await open('/');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('searchbox').fill('tenantScope');
    await page.locator('.result[href*="policy"]').first().click();
    await page.waitForURL(/guide\/policy\.html/);
    await page.getByRole('heading', { level: 1, name: 'Policy' }).waitFor();
    expect(await page.locator('main').textContent()).toContain('tenantScope');
    await page.close();
  });

  it('says at the top what Parley is, with a picture, and which version', async () => {
    const page = await open('/');
    const [first] = await page.locator('main p').allTextContents();
    expect(first).toBe(
      'Let AI agents work with your Parse and MongoDB data, and decide what each of them may see and change.',
    );
    expect(await page.locator('main img').first().isVisible()).toBe(true);
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    expect(await page.locator('header').innerText()).toContain(`Version ${version}`);
    await page.close();
  });

  it('puts first the page that answers a question', async () => {
    const page = await open('/');
    await page.getByRole('button', { name: 'Search' }).click();
    const box = page.getByRole('searchbox');
    const results = page.locator('.result');
    const found: Record<string, string> = {};
    for (const question of Object.keys(QUESTIONS)) {
      await box.fill('');
      await results.first().waitFor({ state: 'detached' });
      await box.fill(question);
      const address = (await results.first().getAttribute('href')) ?? '';
      found[question] = address.replace(/^\/|(\.html)?(#.*)?$/g, '');
    }
    expect(found).toEqual(QUESTIONS);
    await page.close();
  });

  it('has the index of the documentation as its navigation', async () => {
    const page = await open('/reference/configuration.html');
    const groups = await page.locator('aside .level-0 > .item > .text').allTextContents();
    expect(groups).toEqual(['Guide', 'Reference', 'Operations', 'Contributing', 'More']);
    const pages = await page.locator('aside .level-1 a').allTextContents();
    expect(pages).toEqual(expect.arrayContaining(['Five minutes to a policy', 'Configuration', 'Changelog']));
    await page.close();
  });

  it('has every page that its navigation leads to', async () => {
    const page = await open('/');
    const addresses = await page
      .locator('aside a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')));
    const missing = addresses.filter(
      (address) => !existsSync(join(site, `${address}`.replace(/\/$/, '/index.html'))),
    );
    expect(addresses.length).toBeGreaterThan(60);
    expect(missing).toEqual([]);
    await page.close();
  });

  it.each(['/', '/guide/policy.html', '/reference/configuration.html', '/operations/console.html'])(
    '%s fits a narrow window, in the dark as well',
    async (path) => {
      const page = await open(path, { width: 390, colorScheme: 'dark' });
      const narrow = await page.locator('html').evaluate((html) => html.scrollWidth <= html.clientWidth);
      const dark = await page.locator('html.dark').count();
      const broken = await page
        .locator('img')
        .evaluateAll((images) =>
          images.filter((image) => (image as unknown as { naturalWidth: number }).naturalWidth === 0),
        );
      expect([narrow, dark, broken]).toEqual([true, 1, []]);
      await page.close();
    },
  );

  it.each([960, 1280, 1440, 1700, 1920])(
    'cuts neither its navigation nor its bar at %i pixels',
    async (width) => {
      const page = await open('/operations/runbook.html', { width });
      const CUT = `[...document.querySelectorAll('.VPSidebar a .text, .VPNavBar .VPSwitch')]
      .map((one) => [one.textContent, one.getBoundingClientRect(), one])
      .filter(([, at]) => at.width > 0)
      .filter(([, at, one]) => {
        const frame = one.closest('.VPSidebar')?.getBoundingClientRect() ?? document.documentElement.getBoundingClientRect();
        return at.left < frame.left || at.right > frame.right;
      })
      .map(([text]) => text)`;
      expect(await page.evaluate<string[]>(CUT)).toEqual([]);
      await page.close();
    },
  );

  it('never asks another host for anything', () => {
    expect(wrong).toEqual([]);
  });
});

describe('links of the documentation', () => {
  interface Links {
    extend(markdown: unknown): void;
    check(): void;
  }
  interface Renderer {
    render(text: string, env: object): string;
  }

  async function rendered(text: string): Promise<{ html: string; links: Links }> {
    const { RepositoryLinks, githubSlug } = (await import(
      pathToFileURL(join(tool, '.vitepress/repository-links.mjs')).href
    )) as {
      RepositoryLinks: new (root: string, files: ReadonlyMap<string, string>) => Links;
      githubSlug: unknown;
    };
    const { createMarkdownRenderer, disposeMdItInstance } = (await import(
      pathToFileURL(join(tool, 'node_modules/vitepress/dist/node/index.js')).href
    )) as {
      createMarkdownRenderer(source: string, options: object): Promise<Renderer>;
      disposeMdItInstance(): void;
    };
    // VitePress keeps the first renderer.
    disposeMdItInstance();
    const links = new RepositoryLinks(root, new Map([['guide/policy.md', 'docs/guide/policy.md']]));
    const markdown = await createMarkdownRenderer(root, {
      anchor: { slugify: githubSlug },
      config: (extended: unknown) => links.extend(extended),
    });
    const html = markdown.render(text, {
      relativePath: 'guide/policy.md',
      path: 'guide/policy.md',
    });
    return { html, links };
  }

  it('lead to pages and anchors as they do in the repository, and to files not at all', async () => {
    const text =
      '# A `title`, and more\n\n<a id="old"></a>\n[a](policy.md#a-title-and-more) [b](#old) [c](../../Dockerfile) [d](https://x.test)';
    const { html, links } = await rendered(text);
    expect(html).toContain('href="/guide/policy.html#a-title-and-more"');
    expect(html).toContain('<span title="In the repository: Dockerfile">c</span>');
    expect(() => links.check()).not.toThrow();
  });

  it.each([
    ['[a](nowhere.md)', 'nowhere.md does not exist'],
    ['[a](../../nowhere/)', 'nowhere/ does not exist'],
    ['[a](#nowhere)', 'docs/guide/policy.md has no #nowhere'],
  ])('fail the build where they lead nowhere: %s', async (text, message) => {
    const { links } = await rendered(text);
    expect(() => links.check()).toThrow(message);
  });
});
