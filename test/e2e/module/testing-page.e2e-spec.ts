import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';

/** The code of the page is one suite, which runs here as a reader would run it. */
const page = readFileSync(new URL('../../../docs/guide/testing.md', import.meta.url), 'utf8');
const code = [...page.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, block = '']) => block);

// Inside the repository, where packages are found.
const folder = mkdtempSync(
  join(fileURLToPath(new URL('../..', import.meta.url)), 'fixtures/testing-kit/page-'),
);
const file = join(folder, 'page.ts');
writeFileSync(file, code.join('\n'));
try {
  await import(pathToFileURL(file).href);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

it('is code in every part of the page', () => {
  expect(code.length).toBeGreaterThanOrEqual(7);
});
