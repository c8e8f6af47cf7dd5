import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { makeFolder } from '../../support/started.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
/** Width and height of a PNG. */
const sizeOf = (path: string) => [16, 20].map((at) => readFileSync(path).readUInt32BE(at));

it(
  'The picture of the console is made from the demo, as large as the one of the page',
  { timeout: 240_000 },
  async () => {
    const folder = makeFolder('picture');
    const path = join(folder, 'console.png');
    await promisify(execFile)(process.execPath, [join(root, 'tools', 'console-picture.mjs'), path]);
    expect(sizeOf(path)).toEqual(sizeOf(join(root, 'docs', 'images', 'console.png')));
  },
);
