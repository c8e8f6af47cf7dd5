import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformWithOxc } from 'vite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

let folder: string;
let bundle: string;
let cache: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'parley-code-cache-'));
  bundle = join(folder, 'bundle.cjs');
  cache = join(folder, '.code-cache');
  writeFileSync(bundle, 'exports.answer = () => 42;');
  const source = fileURLToPath(new URL('code-cache.ts', import.meta.url));
  const { code } = await transformWithOxc(readFileSync(source, 'utf8'), source);
  writeFileSync(join(folder, 'code-cache.mjs'), code);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A process that runs the bundle and ends. */
function run(...flags: string[]): string {
  const script = `
    import { Script } from 'node:vm';
    import { runCached } from './code-cache.mjs';
    process.stdout.write(String(runCached(${JSON.stringify(bundle)}).answer()));`;
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '--input-type=module', '-e', script], {
    cwd: folder,
    encoding: 'utf8',
  });
  return stdout.trim() + stderr;
}

const files = () => readdirSync(cache).map((name) => join(cache, name));
const marks = () => files().map((file) => [file, statSync(file).mtimeMs]);

describe('the code cache of a bundle', () => {
  it('is written once, and read by the next start', () => {
    expect(run()).toBe('42');
    const written = marks();
    expect(written).toHaveLength(1);
    expect(run()).toBe('42');
    expect(marks()).toEqual(written);
  });

  it('is one for each content and for each set of flags that V8 compiles for', () => {
    run();
    run('--no-opt');
    expect(files()).toHaveLength(2);
    writeFileSync(bundle, 'exports.answer = () => 43;');
    expect(run()).toBe('43');
    expect(files()).toHaveLength(3);
  });

  it('is not written by a process that changes the flags, because no start would take it', () => {
    writeFileSync(bundle, "require('node:v8').setFlagsFromString('--no-opt'); exports.answer = () => 45;");
    expect(run()).toBe('45');
    expect(readdirSync(folder)).not.toContain('.code-cache');
  });

  it('is not read when its content was damaged, and is written again', () => {
    run();
    const [file = ''] = files();
    const bytes = readFileSync(file);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 255;
    writeFileSync(file, bytes);
    expect(run()).toBe('42');
    expect(readFileSync(file).equals(bytes)).toBe(false);
  });

  it('is neither read nor written in a folder that others can write', () => {
    run();
    const written = marks();
    writeFileSync(bundle, 'exports.answer = () => 44;');
    chmodSync(cache, 0o777);
    expect(run()).toBe('44');
    expect(marks()).toEqual(written);
  });

  it('is not written behind a link', () => {
    mkdirSync(join(folder, 'elsewhere'));
    symlinkSync(join(folder, 'elsewhere'), cache);
    expect(run()).toBe('42');
    expect(readdirSync(join(folder, 'elsewhere'))).toEqual([]);
  });

  it.skipIf(process.getuid?.() !== 0)('is neither read nor written in a folder of another user', () => {
    mkdirSync(cache);
    chownSync(cache, 12_345, 12_345);
    expect(run()).toBe('42');
    expect(files()).toEqual([]);
  });
});
