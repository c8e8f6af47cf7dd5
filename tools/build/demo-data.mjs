// Makes a data file of the demo's seed, dist/seeds/HASH-DATABASE.data, which the embedded database reads in its own thread
// (libs/parley/src/package-files.ts). It is the file that `parley embedded --data` writes.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { crc32 } from 'node:zlib';

const root = fileURLToPath(new URL('../..', import.meta.url));
const seed = join(root, 'demo', 'seed.json');
const DATABASE = 'parley';

const hash = createHash('sha256').update(readFileSync(seed)).digest('hex');
const folder = join(root, 'dist', 'seeds');
mkdirSync(folder, { recursive: true });
const file = join(folder, `${hash}-${DATABASE}.data`);
const args = ['embedded', '--port', '0', '--database', DATABASE, '--seed', seed, '--data', file];
const database = spawn(process.execPath, [join(root, 'dist', 'bundle', 'cli.js'), ...args], {
  stdio: ['ignore', 2, 'pipe'],
});
let output = '';
database.stderr?.on('data', (chunk) => {
  output += chunk;
  // Its end writes what is pending.
  if (/listening on/.test(output)) database.kill('SIGTERM');
});
database.once('exit', (code) => {
  if (code === 0) {
    writeFileSync(file, withFixedIds(readFileSync(file)));
    chmodSync(file, 0o644);
  } else process.stderr.write(output);
  process.exitCode = code ?? 1;
});

/**
 * Collections get random ids. Those of the demo are made of its seed, so that each build makes the same file: records of length,
 * checksum and BSON.
 * @param {Buffer} bytes
 */
function withFixedIds(bytes) {
  const created = Buffer.from('\x02o\0\x07\0\0\0create\0');
  const id = Buffer.from('\x05uuid\0\x10\0\0\0\x04');
  let collections = 0;
  for (let at = 0; at < bytes.length; at += 8 + bytes.readUInt32LE(at)) {
    const record = bytes.subarray(at + 8, at + 8 + bytes.readUInt32LE(at));
    const found = record.includes(created) ? record.indexOf(id) : -1;
    if (found < 0) continue;
    collections += 1;
    const uuid = createHash('sha256').update(`${hash} ${collections}`).digest().subarray(0, 16);
    uuid.writeUInt8((uuid.readUInt8(6) & 0x0f) | 0x40, 6);
    uuid.writeUInt8((uuid.readUInt8(8) & 0x3f) | 0x80, 8);
    uuid.copy(record, found + id.length);
    bytes.writeUInt32LE(crc32(record), at + 4);
  }
  return bytes;
}
