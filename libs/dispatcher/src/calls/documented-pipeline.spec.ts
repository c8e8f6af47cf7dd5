import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ERROR_CODES } from '#core';
import type { Gate } from './tool-execution.js';
import { TOOL_GUARDS, TOOL_STEPS } from './tool-pipeline.js';

const page = readFileSync(
  new URL('../../../../docs/contributing/life-of-a-call.md', import.meta.url),
  'utf8',
);

describe('the page on the life of a call', () => {
  it('tells the gates of a tool call in the order in which they are asked', () => {
    const [, chapter = ''] = page.split(/^## 4\. .*$/m);
    const rows = (chapter.split(/^## /m)[0] ?? '').matchAll(/^\| \d+ +\| `(\w+)`/gm);
    const guards = TOOL_GUARDS.map((guard) => Reflect.construct(guard, []) as Gate);
    expect([...rows].map(([, gate]) => gate)).toEqual(guards.map(({ gate }) => gate));
  });

  it('tells the steps around them in their order, outermost first', () => {
    const named = [...page.matchAll(/`(\w+Step)`/g)].map(([, name]) => name);
    expect(named).toEqual(TOOL_STEPS.map(({ name }) => name));
  });

  it('tells where each code of a refusal comes from', () => {
    expect(ERROR_CODES.filter((code) => !page.includes(`\`${code}\``))).toEqual([]);
  });
});
