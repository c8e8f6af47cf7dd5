import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutText } from './text.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));

describe('a cut of a text', () => {
  it('is the longest beginning that fits and ends with a whole character', () => {
    const characters = fc.array(fc.constantFrom('a', 'ä', '😀', '𝒳', '\n'), { maxLength: 30 });
    fc.assert(
      fc.property(characters, fc.integer({ min: 1, max: 40 }), (written, most) => {
        const whole: string[] = [];
        for (const character of written) {
          if (whole.join('').length + character.length > most) break;
          whole.push(character);
        }
        expect(cutText(written.join(''), most)).toBe(whole.join(''));
      }),
    );
  });

  it('is made by this function alone', () => {
    /** A beginning of a text: by the name of its bound, or by a number that no list has as its bound. */
    const CUT =
      /\.slice\(0, (?:MAX_(?:TEXT|NAME|REASON|TOLD|FAULT|SUMMARY|VALUE|CHARACTERS)|ECHO_LENGTH|64|128|200|500|512|2_000)\)/;
    const files = ['libs', 'src'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
        join(folder, name),
      ),
    );
    const sources = files.filter(
      (file) =>
        /\/(?:src|page)\/|^src\//.test(file) &&
        /(?<!\.spec|\.fixture)\.tsx?$/.test(file) &&
        !/embedded-mongo|\/(?:testing|contracts)\/|node_modules/.test(file),
    );
    expect(sources.length).toBeGreaterThan(500);
    const found = sources.flatMap((file) =>
      readFileSync(join(root, file), 'utf8')
        .split('\n')
        .filter((line) => CUT.test(line) && !line.includes('Array.from'))
        .map((line) => `${file}: ${line.trim()}`),
    );
    expect(found).toEqual([]);
  });
});
