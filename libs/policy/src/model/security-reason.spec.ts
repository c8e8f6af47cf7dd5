import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { catchRefusal } from '../music.fixture.js';
import { blockFilter, SECURITY_REASONS } from './where.js';

describe('security reasons', () => {
  it('are the ones the documentation lists, no more and no fewer', () => {
    const page = readFileSync(new URL('../../../../docs/reference/refusals.md', import.meta.url), 'utf8');
    const [, section = ''] = page.split('## Security refusals are opaque');
    const [table = ''] = section.split(/^## /m);
    const listed = table
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map((match) => match[1]));
    expect(new Set(listed)).toEqual(new Set<string>(SECURITY_REASONS));
  });

  it('reach the log with their place, and never the wire', () => {
    const refusal = catchRefusal(() => {
      throw blockFilter('pipeline', 'unknown_stage', `stage 3 ${'x'.repeat(500)}`);
    });
    expect(refusal).toMatchObject({ code: 'security_blocked', message: 'Invalid params', opaque: true });
    expect(refusal?.cause).toMatch(/^unknown_stage at stage 3 x+$/);
    expect(refusal?.cause?.length).toBeLessThan(250);
  });
});
