import { describe, expect, it } from 'vitest';
import { type ParleyModuleOptions, readConfiguration } from './parley-options.js';

describe('a named instance', () => {
  const redisOf = (name: string, redis: object | undefined) =>
    readConfiguration({ ...(redis && { redis }) }, { name, admits: false }).configuration['redis'];
  const url = 'redis://127.0.0.1';

  it('never keeps its state where the default one does, because a prefix was given as nothing', () => {
    for (const redis of [undefined, { url }, { url, prefix: undefined }])
      expect(redisOf('partners', redis)).toMatchObject({ prefix: 'parley-partners' });
  });

  it('keeps it under the prefix that it is given, as replicas of it do', () => {
    expect(redisOf('partners', { url, prefix: 'ours' })).toEqual({ url, prefix: 'ours' });
    expect(redisOf('default', { url })).toEqual({ url });
  });
});

describe('the options', () => {
  it('leave out of an audit sink what has a default', () => {
    const audit: ParleyModuleOptions['audit'] = {
      sinks: [
        { kind: 'file', path: './records.jsonl' },
        { kind: 'mongodb', days: 30 },
        { kind: 'webhook', url: 'https://example.com', secret: 'a-secret-of-the-test' },
      ],
    };
    expect(readConfiguration({ audit }, { name: 'default', admits: false }).configuration['audit']).toEqual(
      audit,
    );
  });
});
