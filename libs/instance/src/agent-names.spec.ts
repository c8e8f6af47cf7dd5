import { describe, expect, it } from 'vitest';
import { warnOfEmptyDatabase } from './agent-names.js';

async function warnings(uri: string | null, empty: boolean | null): Promise<string[]> {
  const lines: string[] = [];
  const names = { isEmpty: () => Promise.resolve(empty) };
  await warnOfEmptyDatabase({ uri, name: 'shop' }, names, { warn: (line: string) => void lines.push(line) });
  return lines;
}

describe('a database without classes', () => {
  it('is said at the start, with what to write', async () => {
    expect(await warnings('mongodb://db/', true)).toEqual([
      expect.stringMatching(/^database\.name: the database 'shop' has no classes; write the name/),
    ]);
  });

  it.each([
    ['one that has classes', 'mongodb://db/shop', false],
    ['one that does not answer', 'mongodb://db/shop', null],
    ['the embedded one', 'embedded', true],
    ['none', null, true],
  ])('is not said of %s', async (_, uri, empty) => {
    expect(await warnings(uri, empty)).toEqual([]);
  });
});
