import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const css = readFileSync(new URL('./console.css', import.meta.url), 'utf8');
const [light = '', dark = ''] = [...css.matchAll(/:root \{([^}]*)\}/g)].map(([, body]) => body ?? '');

const colours = (text: string) =>
  new Map(
    [...text.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name, value] as const),
  );

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
  'bad bad-ground,busy busy-ground,bad panel,ink good-ground,ink bad-ground'
).split(',');

describe.each([
  ['light', colours(light)],
  ['dark', colours(dark)],
])('the colours of the page, %s', (_, palette) => {
  it.each(TEXTS)('let text be read: %s', (pair) => {
    const [text = '', ground = ''] = pair.split(' ').map((name) => palette.get(name) ?? '');
    expect(contrast(text, ground)).toBeGreaterThanOrEqual(4.5);
  });

  it.each(['ground', 'panel'])('let the focus be seen on the %s', (ground) => {
    expect(contrast(palette.get('focus') ?? '', palette.get(ground) ?? '')).toBeGreaterThanOrEqual(3);
  });
});
