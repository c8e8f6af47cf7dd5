import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { freePort } from '../../../tools/free-port.mjs';
import { callTool } from '../../support/service.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const page = readFileSync(join(root, 'docs/guide/changes.md'), 'utf8');
const [, story = ''] = /^## With the demo shop\n([^]*?)^## /m.exec(page) ?? [];
const SOON = { timeout: 30_000, interval: 100 };

/** The blocks of the page in their order, at an address that is free. */
const blocksOf = (language: string, port: number): string[] =>
  [...story.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(([, block = '']) =>
    block.replaceAll('3001', String(port)),
  );

let folder: string;
let port: number;
const running: ChildProcess[] = [];
beforeAll(async () => {
  port = await freePort();
  // Inside the repository, where packages are found.
  folder = mkdtempSync(join(root, 'test/fixtures/story-'));
});
afterAll(async () => {
  for (const child of running) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    process.kill(-(child.pid ?? 0), 'SIGTERM');
    await once(child, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
});

/** A terminal in which a block is entered, after what was exported in it before. */
function enter(block: string, exported = '') {
  const npx = `npx() { shift; node ${join(root, 'dist/bundle/cli.js')} "$@"; }`;
  const child = spawn('bash', ['-c', ['set -e', npx, exported, block].join('\n')], {
    cwd: folder,
    detached: true,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
  });
  running.push(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => (text += part));
  const ended = once(child, 'close').then(([code]) => {
    if (code !== 0) throw new Error(`${block}\nended with ${String(code)}:\n${text}`);
    return text;
  });
  ended.catch(() => undefined);
  return { ended, text: () => text };
}

async function countReturned(): Promise<number> {
  const { data } = await callTool(
    { url: `http://127.0.0.1:${port}/mcp` },
    'count_objects',
    { class_name: 'Order', where: { status: 'returned' } },
    { 'X-MCP-API-Key': 'key-of-lead-0001' },
  );
  return Number(data['count']);
}

it('The story of the page happens as it is told', { timeout: 180_000 }, async () => {
  const [config = ''] = blocksOf('yaml', port);
  const [program = ''] = blocksOf('js', port);
  const [serving = '', asking = '', deciding = '', undoing = '', night = '', morning = ''] = blocksOf(
    'bash',
    port,
  );
  writeFileSync(
    join(folder, 'changes.yaml'),
    config.replace('./demo/seed.json', join(root, 'demo/seed.json')),
  );
  writeFileSync(join(folder, 'agent.mjs'), program);

  const service = enter(serving);
  await vi.waitFor(() => expect(service.text()).toContain(`127.0.0.1:${port}`), SOON);
  const before = await vi.waitUntil(() => countReturned().catch(() => null), SOON);
  const agent = enter(asking);

  // What a reader copies from one line of the output into the next command.
  const [settings = '', list = '', cases = '', show = '', approve = ''] = deciding.trim().split('\n');
  const set = await vi.waitFor(async () => {
    const listed = await enter(list, settings).ended;
    expect(listed).toMatch(/ submitted .* 30 changed +- +Orders of the recall/);
    return / *(\S{20}) +support/.exec(listed)?.[1] ?? '';
  }, SOON);
  const [, found = ''] = /^(\S+) +support +submit_changes/m.exec(await enter(cases, settings).ended) ?? [];
  const shown = await enter(show.replace('CASE', found), settings).ended;
  const { digest, preview } = JSON.parse(shown) as { digest: string; preview: { changes: unknown[] } };
  expect(preview.changes).toHaveLength(30);
  expect(preview.changes[0]).toMatchObject({
    before: { status: 'delivered' },
    after: { status: 'returned' },
  });
  expect(await countReturned()).toBe(before);
  await enter(approve.replace('SET', set).replace('DIGEST', digest), settings).ended;
  expect(await agent.ended).toContain('applied: true');
  expect(await countReturned()).toBe(Number(before) + 30);

  await enter(undoing.replace('SET', set), settings).ended;
  expect(await countReturned()).toBe(before);

  const nightly = await enter(`${night}\nprintf '\\nsince %s\\n' $SINCE`, settings).ended;
  expect(nightly).toContain('wrote 30 orders');
  expect(await countReturned()).toBe(Number(before) + 29);
  const [, since = ''] = /^since (\S+)$/m.exec(nightly) ?? [];
  const taken = await enter(morning, `${settings}\nexport SINCE=${since}`).ended;
  expect(taken).toContain('30 change sets would be taken back: 29 changed.');
  expect(taken).toContain('conflict: Order UDNQ8XlgzX: somebody has changed this row since');
  expect(taken).toContain('Taken back by change set');
  expect(await countReturned()).toBe(before);
});
