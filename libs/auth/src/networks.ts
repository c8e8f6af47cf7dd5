import { BlockList, isIP, isIPv6 } from 'node:net';

/**
 * The network that a remote address belongs to: an IPv4 address itself; the first 64 bits of an IPv6 address, because
 * a subscriber usually has all addresses of a /64.
 */
export function remoteNetwork(address: string | undefined): string {
  if (address === undefined) return '';
  const plain = address.split('%')[0] as string;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1];
  if (mapped !== undefined) return mapped;
  return isIPv6(plain) ? `${firstGroups(plain).join(':')}::/64` : plain;
}

/** The first four groups of an IPv6 address, without leading zeros. */
function firstGroups(address: string): string[] {
  const [head = '', tail] = address.split('::');
  const written = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  // An embedded IPv4 address stands for two groups.
  const length = (groups: string[]) => groups.length + groups.filter((group) => group.includes('.')).length;
  const zeros = tail === undefined ? 0 : 8 - length(written) - length(after);
  const groups = [...written, ...Array<string>(Math.max(zeros, 0)).fill('0'), ...after];
  return groups.slice(0, 4).map((group) => group.toLowerCase().replace(/^0+(?=.)/, ''));
}

/** A list of addresses and networks (`10.0.0.0/8`, `fd00::/8`, `127.0.0.1`). */
export class TrustedNetworks {
  private readonly list = new BlockList();

  /** @throws TypeError naming the invalid entry */
  constructor(entries: readonly string[]) {
    for (const entry of entries) this.add(entry);
  }

  has(address: string | undefined): boolean {
    const plain = address?.split('%')[0]?.replace(/^::ffff:(?=\d+\.)/i, '') ?? '';
    const family = isIP(plain);
    return family !== 0 && this.list.check(plain, family === 4 ? 'ipv4' : 'ipv6');
  }

  private add(entry: string): void {
    const [address = '', bits, ...rest] = entry.split('/');
    const family = isIP(address);
    const most = family === 4 ? 32 : 128;
    const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
    if (family === 0 || rest.length > 0 || length < 0 || length > most)
      throw new TypeError(`'${entry}' is neither an address nor a network`);
    this.list.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6');
  }
}
