import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const css = readFileSync(new URL('./console.css', import.meta.url), 'utf8');
const [, names = ''] = /:root \{([^}]*)\}/.exec(css) ?? [];
const COLOUR = /--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);/g;

/** The colours of one theme: the first or the second of each pair. */
const colours = (at: 2 | 3) =>
  new Map([...names.matchAll(COLOUR)].map((found) => [found[1] ?? '', found[at] ?? ''] as const));

function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one: string, other: string): number {
  const [light = 0, dark = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

const TEXTS = (
  'ink ground,ink panel,quiet ground,quiet panel,on-main main,main panel,good good-ground,' +
  'bad bad-ground,busy busy-ground,bad panel,ink good-ground,ink bad-ground,quiet raised,ink raised,' +
  'main ground,main chosen,panel bad,bad raised,main raised'
).split(',');

describe.each([
  ['light', colours(2)],
  ['dark', colours(3)],
])('the colours of the page, %s', (_, palette) => {
  it.each(TEXTS)('let text be read: %s', (pair) => {
    const [text = '', ground = ''] = pair.split(' ').map((name) => palette.get(name) ?? '');
    expect(contrast(text, ground)).toBeGreaterThanOrEqual(4.5);
  });

  it.each(['1', '2', '3', 'bad'])('let series %s of a chart be seen', (series) => {
    expect(
      contrast(palette.get(`series-${series}`) ?? '', palette.get('panel') ?? ''),
    ).toBeGreaterThanOrEqual(3);
  });

  it.each(['ground', 'panel'])('let the focus be seen on the %s', (ground) => {
    expect(contrast(palette.get('focus') ?? '', palette.get(ground) ?? '')).toBeGreaterThanOrEqual(3);
  });
});
