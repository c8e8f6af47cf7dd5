import { BlockList, isIP } from 'node:net';

/** Addresses that mean something only inside a network: nothing public is reached there. */
const INSIDE = new BlockList();
const RANGES: readonly (readonly [string, number, 'ipv4' | 'ipv6'])[] = [
  ['0.0.0.0', 8, 'ipv4'],
  ['10.0.0.0', 8, 'ipv4'],
  ['100.64.0.0', 10, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['172.16.0.0', 12, 'ipv4'],
  ['192.0.0.0', 24, 'ipv4'],
  ['192.168.0.0', 16, 'ipv4'],
  ['198.18.0.0', 15, 'ipv4'],
  ['224.0.0.0', 3, 'ipv4'],
  ['::', 127, 'ipv6'],
  ['64:ff9b::', 96, 'ipv6'],
  ['2002::', 16, 'ipv6'],
  ['fc00::', 7, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['ff00::', 8, 'ipv6'],
];
for (const [network, bits, family] of RANGES) INSIDE.addSubnet(network, bits, family);

/** Whether an IP address is a loopback, private, link-local or otherwise not public one. What is no address counts as one. */
export function isInsideAddress(address: string): boolean {
  const bare = address.replace(/^\[|\]$/g, '').replace(/%.*$/, '');
  const version = isIP(bare);
  if (version === 0) return true;
  // A mapped IPv4 address is checked as the IPv4 one by the list itself.
  return INSIDE.check(bare, version === 4 ? 'ipv4' : 'ipv6');
}

/** Addresses of this machine and of its link: no name of somebody else's leads there by right. */
const LOCAL = new BlockList();
const LOCAL_RANGES: typeof RANGES = [
  ['0.0.0.0', 8, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['224.0.0.0', 3, 'ipv4'],
  ['::', 127, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['ff00::', 8, 'ipv6'],
];
for (const [network, bits, family] of LOCAL_RANGES) LOCAL.addSubnet(network, bits, family);

/** Whether an IP address leads to this machine or stays on its link. What is no address counts as one that does. */
export function isLocalAddress(address: string): boolean {
  const bare = address.replace(/^\[|\]$/g, '').replace(/%.*$/, '');
  const version = isIP(bare);
  return version === 0 || LOCAL.check(bare, version === 4 ? 'ipv4' : 'ipv6');
}

/** Whether a host name says by itself that it is this machine. */
export function namesThisMachine(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return (
    bare === 'localhost' || bare.endsWith('.localhost') || bare === '::1' || /^127(\.\d{1,3}){3}$/.test(bare)
  );
}
