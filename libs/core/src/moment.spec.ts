import { describe, expect, it } from 'vitest';
import { readMoment } from './moment.js';

describe('a moment that somebody writes', () => {
  it.each([
    ['2027-01-31', '2027-01-31T00:00:00.000Z'],
    ['2027-01-31T18:00Z', '2027-01-31T18:00:00.000Z'],
    ['2027-01-31 18:00z', '2027-01-31T18:00:00.000Z'],
    ['2027-01-31T18:00:30+02:00', '2027-01-31T16:00:30.000Z'],
    ['2027-01-31T18:00:30.123456789+0200', '2027-01-31T16:00:30.123Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])('may be %s', (text, time) => {
    expect(new Date(readMoment(text) ?? Number.NaN).toISOString()).toBe(time);
  });

  it.each([
    '',
    '1',
    'tomorrow',
    '2027',
    '2027-01',
    '2027-1-31',
    '2027-02-30',
    '2027-13-01',
    '2027-01-31T18:00',
    '2027-01-31 18:00',
    '2027-01-31T25:00Z',
    '2027-01-31 18:00+99:00',
    '9999-12-31T23:59:59-01:00',
    '31.01.2027',
  ])('is no %j: it would mean another one on another machine, or none', (text) => {
    expect(readMoment(text)).toBeNull();
  });
});
