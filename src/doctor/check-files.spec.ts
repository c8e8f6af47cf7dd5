import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkFiles } from './check-files.js';
import { checkRuntime } from './check-runtime.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-files-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, mode: number): string {
  const path = join(folder, name);
  writeFileSync(path, '');
  chmodSync(path, mode);
  return path;
}

const judged = (files: Partial<Parameters<typeof checkFiles>[0]>) =>
  checkFiles({ config: null, plugins: [], secrets: [], literalSecrets: [], ...files }).map(
    ({ check, level }) => `${level} ${check}`,
  );

describe('the files of a deployment', () => {
  it('fail when other users may write what the service loads', () => {
    expect(judged({ config: file('open.yaml', 0o666) })).toEqual(['fail files.writable']);
    expect(judged({ plugins: [file('open.mjs', 0o602)] })).toEqual(['fail files.writable']);
    expect(judged({ secrets: [file('open', 0o642)] })).toEqual(['fail files.writable']);
  });

  it('fail when other users may replace them', () => {
    const open = join(folder, 'open-folder');
    mkdirSync(open);
    const inside = file('open-folder/parley.yaml', 0o600);
    chmodSync(open, 0o777);
    expect(judged({ config: inside })).toEqual(['fail files.writable']);
    // Sticky like /tmp: other users' files stay theirs.
    chmodSync(open, 0o1777);
    expect(judged({ config: inside })).toEqual(['ok files']);
  });

  it('are warned of when a group writes them, and when other users read secrets', () => {
    expect(judged({ config: file('group.yaml', 0o660) })).toEqual(['warn files.writable']);
    expect(judged({ secrets: [file('readable', 0o644)] })).toEqual(['warn files.secret']);
    const config = file('literal.yaml', 0o644);
    expect(judged({ config })).toEqual(['ok files']);
    expect(judged({ config, literalSecrets: ['auth.0.apiKey'] })).toEqual([
      'warn files.literal_secret',
      'warn files.secret',
    ]);
  });

  it('are good when they are nobody else’s', () => {
    expect(judged({ config: file('own.yaml', 0o640), secrets: [file('own', 0o400)] })).toEqual(['ok files']);
  });
});

describe('the process', () => {
  it.each([
    ['20.18.9', 'fail'],
    ['18.20.0', 'fail'],
    ['20.19.0', 'ok'],
    ['22.1.0', 'ok'],
  ])('on Node %s is %s', (version, level) => {
    expect(checkRuntime(version, 1000)).toMatchObject([{ check: 'node', level }, { level: 'ok' }]);
  });
});
