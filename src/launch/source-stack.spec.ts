import { describe, expect, it } from 'vitest';
import { sourceLine, sourceStack } from './source-stack.js';

const lines = { sources: ['libs/a.ts', 'libs/b.ts'], runs: [3, 0, 10, 6, -1, 1, 9, 1, 40] };

describe('a line of a bundle', () => {
  it.each([
    [1, undefined],
    [3, 'libs/a.ts:10'],
    [5, 'libs/a.ts:12'],
    [6, undefined],
    [9, 'libs/b.ts:40'],
    [100, 'libs/b.ts:131'],
  ])('%i is that of its source, and nothing where a package is', (line, expected) => {
    expect(sourceLine(lines, line)).toBe(expected);
  });

  it('stays in a stack where there is no bundle', () => {
    const stack =
      'Error: x\n    at run (/app/dist/bundle/programs.cjs:10:3)\n    at main (file:///app/main.js:1:2)';
    expect(sourceStack(stack)).toBe(stack);
  });
});
