import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { channelTo, gatherMetrics, joinMetrics, metricsOfAll } from './process-metrics.js';

const exposition = (process: number, value: number) =>
  `# HELP calls number of calls\n# TYPE calls counter\ncalls{process="${process}"} ${value}\n`;

/** Two ends of one channel. */
function channel() {
  const [first, other] = [new EventEmitter(), new EventEmitter()];
  const end = (own: EventEmitter, peer: EventEmitter) =>
    channelTo(
      Object.assign(own, { send: (message: object) => setImmediate(() => peer.emit('message', message)) }),
    );
  return [end(first, other), end(other, first)] as const;
}

describe('metrics of several processes', () => {
  it('name each metric once, with the samples of all', () => {
    expect(joinMetrics([exposition(1, 3), exposition(2, 5)])).toBe(
      '# HELP calls number of calls\n# TYPE calls counter\ncalls{process="1"} 3\ncalls{process="2"} 5\n',
    );
  });

  it('are the answer to a scrape of any of them', async () => {
    const ends = [channel(), channel()];
    const sources = ends.map(([, toFirst], index) => {
      const own = { contentType: 'text/plain', text: async () => exposition(index + 1, index) };
      return metricsOfAll(own, toFirst);
    });
    for (const [toOther] of ends) gatherMetrics(toOther, () => ends.map(([each]) => each));
    const texts = await Promise.all(sources.map((source) => source.text()));
    for (const text of texts) {
      expect(text).toContain('calls{process="1"} 0');
      expect(text).toContain('calls{process="2"} 1');
    }
  });

  it('leave out a process that does not answer', async () => {
    const [[toOne, one], [toSilent]] = [channel(), channel()];
    const source = metricsOfAll({ contentType: 'text/plain', text: async () => exposition(1, 7) }, one);
    gatherMetrics(toOne, () => [toOne, toSilent]);
    const text = await source.text();
    expect(text).toContain('calls{process="1"} 7');
    expect(text).not.toContain('process="2"');
  });
});
