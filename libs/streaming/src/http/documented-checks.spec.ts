import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { REQUEST_CHECKS } from './request-checks.js';

const page = readFileSync(
  new URL('../../../../docs/contributing/life-of-a-call.md', import.meta.url),
  'utf8',
);

describe('the page on the life of a call', () => {
  it('tells the rungs of the edge in the order in which they run', () => {
    const [, chapter = ''] = page.split(/^## 1\. .*$/m);
    const rows = (chapter.split(/^## /m)[0] ?? '').matchAll(/^\| (`[^|]+)\|/gm);
    const told = [...rows].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([\w-]+)`/g)].map(([, name]) => name),
    );
    expect(told).toEqual(REQUEST_CHECKS.map(({ name }) => name));
  });
});
