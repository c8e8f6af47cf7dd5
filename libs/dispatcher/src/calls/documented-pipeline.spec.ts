import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ERROR_CODES } from '#core';
import { TOOL_PIPELINE } from './tool-pipeline.js';

const page = readFileSync(
  new URL('../../../../docs/contributing/life-of-a-call.md', import.meta.url),
  'utf8',
);

describe('the page on the life of a call', () => {
  it('lists guards and interceptors of a tool call in the order that runs', () => {
    const [, chapter = ''] = page.split(/^## 4\. .*$/m);
    const rows = (chapter.split(/^## /m)[0] ?? '').matchAll(/^\| \d+ +\| `(\w+)`/gm);
    const steps = TOOL_PIPELINE.map((step) => {
      const made = Reflect.construct(step, []);
      return 'gate' in made ? made.gate : step.name;
    });
    expect([...rows].map(([, step]) => step)).toEqual(steps);
  });

  it('states where each code of a refusal comes from', () => {
    expect(ERROR_CODES.filter((code) => !page.includes(`\`${code}\``))).toEqual([]);
  });
});
