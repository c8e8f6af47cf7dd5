import { describe, expect, it } from 'vitest';
import { ConfigError } from '../config-error.js';
import { readConfig } from '../load-config.js';

function errorsOf(redis: object): string[] {
  try {
    readConfig({ redis } as never);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.issues.map(({ path, message }) => `${path}: ${message}`);
  }
}

const SENTINELS = { sentinels: ['one:26379', '[::1]:26380'], name: 'parley-primary' };
const PEM = '-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n';

describe('the place of Redis', () => {
  it.each<[string, object]>([
    ['is nowhere', {}],
    ['is one server', { url: 'rediss://user:secret@redis:6379', tls: { ca: PEM } }],
    ['is one database of a server', { url: 'redis://:secret%25@redis:6379/15' }],
    ['is behind Sentinels', { ...SENTINELS, username: 'parley', password: 'p', sentinelPassword: 's' }],
    ['is a cluster', { cluster: ['one:6379'], password: 'p', tls: {}, waitForReplicas: 1 }],
  ])('%s', (_, redis) => {
    expect(errorsOf(redis)).toEqual([]);
  });

  it.each<[string, object, string]>([
    [
      'two of them',
      { ...SENTINELS, url: 'redis://x' },
      'redis.sentinels: stands beside redis.url: keep one of them',
    ],
    [
      'a cluster beside Sentinels',
      { ...SENTINELS, cluster: ['a:1'] },
      'redis.cluster: stands beside redis.sentinels: keep one of them',
    ],
    ['Sentinels without a name', { sentinels: ['a:1'] }, 'redis.name: is needed with redis.sentinels'],
    [
      'a name without Sentinels',
      { url: 'redis://x', name: 'n' },
      'redis.name: belongs to redis.sentinels, which is not given',
    ],
    [
      'a database with a name',
      { url: 'redis://u:hunter2@h:1/notadb' },
      'redis.url: must be redis://host:port or rediss://host:port, with /1 behind it for database 1: the path is the number of a database, or empty',
    ],
    [
      'options of the client',
      { url: 'redis://h:1/?db=3' },
      'redis.url: must be redis://host:port or rediss://host:port, with /1 behind it for database 1: nothing follows the number of the database',
    ],
    [
      'a password with a bare %',
      { url: 'redis://:hunter2%zz@h:1' },
      'redis.url: has a user or password with a % that begins no code: write %25 for it',
    ],
    ['an address without a port', { cluster: ['a:1', 'redis'] }, 'redis.cluster.1: must be host:port'],
    [
      'an address that is a URL',
      { cluster: ['redis://u:hunter2@a:1'] },
      'redis.cluster.0: must be host:port',
    ],
    ['a port that is none', { cluster: ['a:70000'] }, 'redis.cluster.0: must be host:port'],
    [
      'a user beside a URL',
      { url: 'redis://x', password: 'hunter2' },
      'redis.password: belongs to redis.sentinels and redis.cluster: one server has it in redis.url',
    ],
    ['certificates without a Redis', { tls: {} }, 'redis.tls: there is no Redis'],
    [
      'a path in the place of a certificate',
      { url: 'rediss://x', tls: { ca: '/etc/ca.pem' } },
      'redis.tls.ca: must be PEM text, such as ${file:redis.pem}',
    ],
    [
      'half of a certificate',
      { url: 'rediss://x', tls: { cert: PEM } },
      'redis.tls: cert and key belong together',
    ],
  ])('is refused as %s, with what to write instead', (_, redis, error) => {
    expect(errorsOf(redis)).toEqual([error]);
    expect(error).not.toContain('hunter2');
  });
});
