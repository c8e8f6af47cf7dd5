import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const here = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8');

describe('the page on the doctor', () => {
  it('names every check, and no other', () => {
    const sources = readdirSync(new URL('.', import.meta.url)).filter((name) =>
      /^(check|examine).*(?<!spec)\.ts$/.test(name),
    );
    const made = sources.flatMap((name) =>
      [
        ...here(name).matchAll(
          /\b(?:ok|warn|fail|checkClock|checkPort|checkWebhook|writable|readable)\(\s*'([a-z_.]+)'/g,
        ),
      ].map(([, check]) => check),
    );
    const page = here('../../docs/operations/doctor.md');
    const result = [...page.matchAll(/^\| (`.*?) *\|/gm)].flatMap(([, names = '']) =>
      [...names.matchAll(/`([a-z_.]+)`/g)].map(([, name]) => name),
    );
    expect(new Set(result)).toEqual(new Set(made));
  });
});
