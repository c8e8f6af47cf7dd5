import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfig } from '#config';
import { openClusterFixture, openGuardedFixture, type RedisFixture } from '#state/contracts';
import { checkRedis } from './check-stores.js';

const { config } = readConfig({});
const findings = async (redis: object) =>
  (await checkRedis({ ...config, redis: { ...config.redis, ...redis } })).map(
    ({ level, check, found, remedy }) => ({ level, check, found, remedy }),
  );

describe('the check of Redis', () => {
  let guarded: RedisFixture;
  let cluster: RedisFixture;
  beforeAll(async () => {
    [guarded, cluster] = await Promise.all([openGuardedFixture(), openClusterFixture()]);
  }, 60_000);
  afterAll(() => Promise.all([guarded.close(), cluster.close()]));

  const url = (from: string, to: string) => guarded.settings.url?.replace(from, to);

  it('passes a user of its own with the rights that the page names', async () => {
    expect(await findings(guarded.settings)).toContainEqual(
      expect.objectContaining({ level: 'ok', check: 'redis' }),
    );
  });

  it.each<[string, () => object, RegExp]>([
    ['a wrong password', () => ({ url: url('hunter2', 'hunter3') }), /user or password/],
    [
      'a certificate that nobody vouches for',
      () => ({ tls: { ...guarded.settings.tls, ca: null } }),
      /not trusted/,
    ],
    [
      'no certificate of ours',
      () => ({ tls: { ca: guarded.settings.tls?.ca } }),
      /does not answer|certificate of ours/,
    ],
    [
      'no TLS at a port with TLS',
      () => ({ url: url('rediss:', 'redis:'), tls: null }),
      /does not answer|TLS/,
    ],
    ['an address where nobody listens', () => ({ url: 'redis://127.0.0.1:1', tls: null }), /nobody listens/],
    [
      'a host that nobody knows',
      () => ({ url: 'redis://no-such-host.invalid:6379', tls: null }),
      /host name is not known/,
    ],
    [
      'Sentinels that are not there',
      () => ({ url: null, sentinels: ['127.0.0.1:1'], name: 'parley-primary', tls: null }),
      /Sentinel/,
    ],
  ])('says of %s what it is and what to do, without a secret', async (_, wrong, found) => {
    const [finding, ...others] = await findings({ ...guarded.settings, ...wrong() });
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      level: 'fail',
      check: 'redis',
      found: expect.stringMatching(found) as string,
    });
    expect(finding?.remedy).toMatch(/^(check|set) /);
    expect(JSON.stringify(finding)).not.toContain('hunter');
  });

  it('fails more replicas to wait for than there are: no claim would ever count', async () => {
    for (const redis of [guarded.settings, cluster.settings])
      expect(await findings({ ...redis, waitForReplicas: 1 })).toContainEqual(
        expect.objectContaining({ level: 'fail', check: 'redis.replicas' }),
      );
  });

  it('names each primary of a cluster, and warns of one without a replica', async () => {
    const all = await findings(cluster.settings);
    expect(all.filter(({ check }) => check === 'redis.server')).toHaveLength(3);
    expect(all.filter(({ check }) => check === 'redis.replicas')).toHaveLength(3);
  });
});
