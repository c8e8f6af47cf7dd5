import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { remoteNetwork } from './credentials.js';

describe('the network of a remote address', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['::1', '0:0:0:0::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:0DB8:0000:00ab:1:2:3:4', '2001:db8:0:ab::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['64:ff9b::10.1.2.3', '64:ff9b:0:0::/64'],
    [undefined, ''],
  ])('of %s is %s', (address, network) => {
    expect(remoteNetwork(address)).toBe(network);
  });

  const group = fc.integer({ min: 0, max: 0xffff }).map((value) => value.toString(16));
  const half = fc.tuple(group, group, group, group).map((groups) => groups.join(':'));

  it('is the same for all addresses of one /64 and never the same for two', () => {
    fc.assert(
      fc.property(half, half, half, half, (network, host, otherHost, otherNetwork) => {
        const own = remoteNetwork(`${network}:${host}`);
        expect(remoteNetwork(`${network}:${otherHost}`)).toBe(own);
        expect(remoteNetwork(`${otherNetwork}:${host}`) === own).toBe(network === otherNetwork);
      }),
    );
  });
});
