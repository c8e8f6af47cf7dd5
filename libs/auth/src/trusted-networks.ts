import { BlockList, isIP } from 'node:net';

/** Addresses and networks (`10.0.0.0/8`, `fd00::/8`, `127.0.0.1`) that a peer may have. */
export class TrustedNetworks {
  private readonly list = new BlockList();

  /** @throws TypeError naming the entry that is none */
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
