import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FieldSchema } from '../model/class-schema.js';
import { withTypedDates } from './plan-write.js';

const DATE: FieldSchema = { type: 'Date' };
const members = new Map<string, FieldSchema>([
  ['until', DATE],
  ['note', { type: 'String' }],
]);
const typed = (iso: string) => ({ __type: 'Date', iso });
const moment = fc
  .date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true })
  .map((date) => date.toISOString());

describe('a date in a write', () => {
  it('is taken as an answer shows it, wherever its column has it', () => {
    fc.assert(
      fc.property(moment, (iso) => {
        expect(withTypedDates(iso, DATE)).toEqual(typed(iso));
        expect(withTypedDates({ until: iso, note: iso }, { type: 'Object', members })).toEqual({
          until: typed(iso),
          note: iso,
        });
        const entries = [{ until: iso }, null, 'x'];
        const read = [{ until: typed(iso) }, null, 'x'];
        expect(withTypedDates(entries, { type: 'Array', members })).toEqual(read);
        const operation = (objects: unknown) => ({ __op: 'Add', objects });
        expect(withTypedDates(operation(entries), { type: 'Array', members })).toEqual(operation(read));
      }),
    );
  });

  it.each([
    ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.000Z'],
    ['2026-01-01T02:00:00+02:00', '2026-01-01T00:00:00.000Z'],
    ['2026-01-01', '2026-01-01T00:00:00.000Z'],
  ])('may be written as %s', (text, iso) => {
    expect(withTypedDates(text, DATE)).toEqual(typed(iso));
  });

  it.each(['tomorrow', '2026-01-01T00:00:00', '2026-02-30', '1', ''])('is not what %j says', (text) => {
    expect(withTypedDates(text, DATE)).toBe(text);
  });

  it('is a text in every other column', () => {
    for (const column of [undefined, { type: 'String' }, { type: 'Object' }, { type: 'Array' }] as const)
      for (const value of ['2026-01-01', { at: '2026-01-01' }, ['2026-01-01']])
        expect(withTypedDates(value, column)).toEqual(value);
  });
});
