import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { openBrowser } from '../../support/browser.js';
import { BEYOND, PALE, UNNAMED } from '../../support/page-checks.js';
import { callTool, type Service, startService } from '../../support/service.js';
import { runCommand } from '../../support/terminal.js';
import { makeFolder } from '../../support/started.js';

const folder = makeFolder('usage');
const CHIEF = { 'X-MCP-API-Key': 'key-of-chief-0000' };
const FORMULA = '@SUM(A1)';
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

let service: Service;
let browser: Browser;
beforeAll(async () => {
  const free = { rateLimit: 1_000_000, tenantId: 'acme' };
  [service, browser] = await Promise.all([
    startService({
      seed: POSTS_SEED,
      config: {
        agents: { chief: free, other: { ...free, tenantId: FORMULA } },
        auth: [
          { apiKey: 'key-of-chief-0000', agent: 'chief', name: 'chief-2026', expires: inDays(5) },
          { apiKey: 'key-of-other-0000', agent: 'other', name: 'other' },
          { apiKey: 'key-that-is-over', agent: 'chief', name: 'chief-2025', expires: '2026-01-01' },
        ],
        policy: { ...POSTS_POLICY, tokenCostPerMillionInput: 2 },
        console: { operators: ['chief'] },
        audit: { sinks: [{ kind: 'file', path: join(folder, 'audit.jsonl') }] },
      },
    }),
    openBrowser(),
  ]);
  for (let call = 0; call < 3; call += 1)
    await callTool(service, 'query_class', { class_name: 'Post' }, CHIEF);
  await callTool(service, 'query_class', { class_name: 'Post' }, { 'X-MCP-API-Key': 'key-of-other-0000' });
}, 120_000);

describe('the usage', () => {
  const today = new Date().toISOString().slice(0, 10);
  const range = `from=${inDays(-1).slice(0, 10)}&to=${inDays(1)}`;

  it('is a file for operators, whose cells no spreadsheet runs, and the same from the command', async () => {
    const answer = await fetch(`${service.origin}/console/api/audit/usage?${range}`, { headers: CHIEF });
    expect(answer.headers.get('content-disposition')).toMatch(/filename="parley-usage-\d{8}T\d{6}Z\.csv"/);
    const text = await answer.text();
    const [head, ...lines] = text.trim().split('\r\n');
    expect(head).toBe('day,agent,tenant,calls,refused,rows,tokens,cost');
    expect(lines).toContainEqual(
      expect.stringMatching(new RegExp(`^${today},chief,acme,3,0,\\d+,\\d+,0\\.\\d+$`)),
    );
    expect(lines.some((line) => /(^|,)"?[=@]/.test(line))).toBe(false);
    const command = ['usage', '--config', service.file, '--since', inDays(-1), '--csv'];
    expect((await runCommand(command, '', { cwd: folder, env: {} })).stdout).toBe(text);
  });

  it('is refused without a time, in words that say which', async () => {
    const answer = await fetch(`${service.origin}/console/api/audit/usage?from=yesterday&to=now`, {
      headers: CHIEF,
    });
    expect([answer.status, await answer.text()]).toEqual([
      400,
      expect.stringContaining('from: expected a date'),
    ]);
    const asked = await runCommand(['usage', '--config', service.file, '--since', 'yesterday'], '', {
      cwd: folder,
      env: {},
    });
    expect([asked.code, asked.stderr]).toEqual([
      2,
      expect.stringContaining('--since: expected a date (2027-01-31) or a time with its zone'),
    ]);
  });
});

describe.each([
  [1280, 'light'],
  [1280, 'dark'],
  [390, 'light'],
  [390, 'dark'],
] as const)('the console at %i px in %s', (width, colorScheme) => {
  it('shows keys that end and offers the usage', async () => {
    const context = await browser.newContext({ viewport: { width, height: 844 }, colorScheme });
    const page = await context.newPage();
    const check = async (name: string) => {
      for (const wrong of [UNNAMED, PALE]) expect(await page.evaluate(wrong)).toEqual([]);
      expect(await page.evaluate<number>(BEYOND)).toBe(0);
      const pictures = process.env['SCREENSHOTS'];
      if (pictures)
        await page.screenshot({ path: `${pictures}/${name}-${colorScheme}-${width}.png`, fullPage: true });
    };
    await page.goto(`${service.origin}/console#/health`);
    await page.getByLabel('API key or access token').fill('key-of-chief-0000');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Keys that end' }).waitFor();
    await page.getByText('1 more', { exact: true }).click();
    expect(await page.getByRole('link', { name: 'The key chief-2026 of chief expires in' }).count()).toBe(1);
    expect(await page.getByRole('link', { name: /The key chief-2025 of chief expired at/ }).count()).toBe(1);
    await check('health');
    await page.goto(`${service.origin}/console#/agent?name=chief`);
    await page.getByRole('table', { name: 'Limits by caller' }).getByText('chief-2026').waitFor();
    await page.goto(`${service.origin}/console#/overview`);
    const link = page.getByRole('link', { name: 'CSV of 31 days' });
    await link.waitFor();
    await check('overview');
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
    expect(download.suggestedFilename()).toMatch(/^parley-usage-/);
    await context.close();
  }, 60_000);
});
