import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PageFiles } from './controllers/page.controller.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-page-'));
  writeFileSync(join(folder, 'index.html'), '<link href="%ASSETS%/a.css">');
  writeFileSync(join(folder, 'a.css'), 'a{}');
  writeFileSync(join(folder, 'notes.txt'), 'not for browsers');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const versionIn = (html: Buffer) => /assets\/([^/]+)\//.exec(html.toString())?.[1] ?? '';

describe('the files of the page', () => {
  it('are named after what they say, so that a browser may keep them', async () => {
    const page = new PageFiles(folder);
    const version = versionIn((await page.html()).plain);
    const css = await page.asset(version, 'a.css');
    expect(css?.plain.toString()).toBe('a{}');
    expect(brotliDecompressSync(css?.brotli ?? Buffer.alloc(0)).toString()).toBe('a{}');
    writeFileSync(join(folder, 'a.css'), 'b{}');
    const next = versionIn((await new PageFiles(folder).html()).plain);
    expect(next).not.toBe(version);
    expect(await new PageFiles(folder).asset(version, 'a.css')).toBeUndefined();
  });

  it('are those of the page alone', async () => {
    const page = new PageFiles(folder);
    const version = versionIn((await page.html()).plain);
    for (const name of ['notes.txt', 'index.html', '../a.css', 'constructor', ''])
      expect(await page.asset(version, name)).toBeUndefined();
  });
});
