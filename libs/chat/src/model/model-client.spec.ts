import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventReader } from './model-client.js';

const whole = (text: string) => new EventReader().take(text);

describe('a stream of events', () => {
  it('is read by the rules of the wire: names, lines, comments and all three line ends', () => {
    expect(whole(': hello\nevent: ping\ndata: 1\n\ndata:2\r\ndata: 3\r\n\r\ndata\r\r\nid: 9\n\n')).toEqual([
      { event: 'ping', data: '1' },
      { event: '', data: '2\n3' },
      { event: '', data: '' },
    ]);
  });

  it('never depends on where it was cut', () => {
    const line = fc.constantFrom('data: {"a":1}', 'data: x', 'event: e', ': c', '', '', 'id: 4', 'data:é😀');
    const end = fc.constantFrom('\n', '\r\n', '\r');
    const text = fc.array(fc.tuple(line, end)).map((lines) => `${lines.flat().join('')}\n\n`);
    fc.assert(
      fc.property(text, fc.array(fc.nat(40)), (stream, cuts) => {
        const reader = new EventReader();
        const events = [];
        let at = 0;
        for (const size of cuts) {
          events.push(...reader.take(stream.slice(at, at + size)));
          at += size;
        }
        events.push(...reader.take(stream.slice(at)));
        expect(events).toEqual(whole(stream));
      }),
    );
  });

  it('ends with an event that is larger than what is read, on one line or on many', () => {
    expect(() => whole(`data: ${'x'.repeat(1_100_000)}`)).toThrow('more than');
    const reader = new EventReader();
    expect(() => {
      for (let line = 0; line < 3_000; line += 1) reader.take(`data: ${'x'.repeat(1_000)}\n`);
    }).toThrow('more than');
  });
});
