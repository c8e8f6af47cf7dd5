import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { REQUEST_CHECKS } from './mcp-edge.js';

const page = readFileSync(
  new URL('../../../../docs/contributing/life-of-a-call.md', import.meta.url),
  'utf8',
);

describe('the page on the life of a call', () => {
  it('lists the request checks in the order in which they run', () => {
    const [, chapter = ''] = page.split(/^## 1\. .*$/m);
    const rows = (chapter.split(/^## /m)[0] ?? '').matchAll(/^\| (`[^|]+)\|/gm);
    const listed = [...rows].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([\w-]+)`/g)].map(([, name]) => name),
    );
    expect(listed).toEqual(REQUEST_CHECKS.map(({ name }) => name));
  });
});
