// Reads ZIP archives, and writes one again so that its bytes depend on nothing but names and contents.
import { inflateRawSync } from 'node:zlib';

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const NAME_IS_UTF8 = 0x0800;
/** The first day that the format knows, 1 January 1980. */
const FIRST_DAY = 0x0021;

/**
 * @typedef {{ name: string, method: number, crc: number, size: number, unpacked: number, data: Buffer }} Entry
 * @param {Buffer} zip
 * @returns {Entry[]}
 */
export function entriesOf(zip) {
  const end = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (end < 0 || zip.readUInt32LE(end) !== END) throw new Error('no ZIP archive');
  const entries = [];
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left -= 1) {
    const length = zip.readUInt16LE(at + 28);
    const extra = zip.readUInt16LE(at + 30);
    const comment = zip.readUInt16LE(at + 32);
    const local = zip.readUInt32LE(at + 42);
    const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const size = zip.readUInt32LE(at + 20);
    entries.push({
      name: zip.toString('utf8', at + 46, at + 46 + length),
      method: zip.readUInt16LE(at + 10),
      crc: zip.readUInt32LE(at + 16),
      size,
      unpacked: zip.readUInt32LE(at + 24),
      data: zip.subarray(start, start + size),
    });
    at += 46 + length + extra + comment;
  }
  return entries;
}

/** @param {Entry} entry */
export const contentOf = ({ method, data }) => (method === 0 ? data : inflateRawSync(data));

/** A file that everyone reads and its owner writes, as UNIX stores it in the upper half. */
const PLAIN_FILE = 0o100644 * 0x1_0000;

/** The same files in the order of their names, with one time and one mode for all. @param {Buffer} zip */
export function reproducible(zip) {
  const entries = entriesOf(zip).sort((one, other) => (one.name < other.name ? -1 : 1));
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const { name, method, crc, size, unpacked, data } of entries) {
    const bytes = Buffer.from(name);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(LOCAL, 0);
    common(local, 4);
    const central = Buffer.alloc(46);
    central.writeUInt32LE(CENTRAL, 0);
    // Made by a UNIX: the attributes are a mode.
    central.writeUInt16LE((3 << 8) | 20, 4);
    common(central, 6);
    central.writeUInt32LE(PLAIN_FILE, 38);
    central.writeUInt32LE(offset, 42);
    parts.push(local, bytes, data);
    directory.push(central, bytes);
    offset += local.length + bytes.length + data.length;

    /** @param {Buffer} header @param {number} start */
    function common(header, start) {
      header.writeUInt16LE(20, start);
      header.writeUInt16LE(NAME_IS_UTF8, start + 2);
      header.writeUInt16LE(method, start + 4);
      header.writeUInt16LE(0, start + 6);
      header.writeUInt16LE(FIRST_DAY, start + 8);
      header.writeUInt32LE(crc, start + 10);
      header.writeUInt32LE(size, start + 14);
      header.writeUInt32LE(unpacked, start + 18);
      header.writeUInt16LE(bytes.length, start + 22);
    }
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(END, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(
    directory.reduce((sum, { length }) => sum + length, 0),
    12,
  );
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, ...directory, end]);
}
