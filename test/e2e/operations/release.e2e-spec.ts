import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeFolder } from '../../support/started.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));

describe('a release', () => {
  const clone = makeFolder('release');
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], {
      cwd: clone,
      encoding: 'utf8',
    });
  const release = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['tools/release.mjs', ...args], {
      cwd: clone,
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  };
  const write = (file: string, text: string) => writeFileSync(join(clone, file), text);
  const announce = () => write('CHANGELOG.md', '# Changelog\n\n## Unreleased\n\nWhat is new.\n');
  const read = (file: string) => readFileSync(join(clone, file), 'utf8');

  beforeAll(() => {
    execFileSync('git', ['clone', '--quiet', '--no-local', '--depth', '1', `file://${root}`, clone]);
    symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'));
    appendFileSync(join(clone, '.git/info/exclude'), 'node_modules\n');
  });

  it('writes its version wherever one is named, and nowhere else', () => {
    announce();
    expect(release('--to', '2.3.4')).toMatchObject({ status: 0 });
    const place = '(parley-[a-z]+-|parley:|"@parley/[a-z-]+": "\\^?)[0-9]+[.][0-9]+[.][0-9]+';
    const lines = git('grep', '-hoE', place, '--', ':!*package-lock.json', ':!CHANGELOG.md')
      .trim()
      .split('\n');
    expect(lines.length).toBeGreaterThan(10);
    expect(lines.filter((line) => !line.endsWith('2.3.4'))).toEqual([]);
    const manifest = JSON.parse(read('package.json')) as { version: string; devDependencies: object };
    expect(manifest).toMatchObject({
      version: '2.3.4',
      devDependencies: { '@parley/embedded-mongo': '2.3.4' },
    });
    expect(JSON.parse(read('package-lock.json'))).toMatchObject({
      version: '2.3.4',
      packages: {
        '': { version: '2.3.4', devDependencies: manifest.devDependencies },
        'libs/embedded-mongo': { version: '2.3.4' },
      },
    });
    expect(JSON.parse(read('libs/embedded-mongo/package.json'))).toMatchObject({ version: '2.3.4' });
    expect(read('deploy/helm/parley/Chart.yaml')).toMatch(/^version: 2.3.4\nappVersion: 2.3.4$/m);
    expect(read('Dockerfile')).toContain('ARG VERSION=2.3.4\n');
    expect(read('CHANGELOG.md')).toMatch(/^## 2\.3\.4 – \d{4}-\d{2}-\d{2}$/m);
    git('checkout', '--quiet', '.');
  });

  it('is refused with changes that no commit holds', () => {
    writeFileSync(join(clone, 'left.txt'), '');
    const { status, stderr } = release('--only', 'chart');
    rmSync(join(clone, 'left.txt'));
    expect(status).toBe(2);
    expect(stderr).toContain('left.txt');
  });

  it('is refused without an entry of the changelog, and so is its version without what is unreleased', () => {
    const old = '# Changelog\n\n## 0.0.1 – 2026-01-01\n';
    write('CHANGELOG.md', old);
    expect(release('--to', '2.3.4')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('no entry "## Unreleased"') as string,
    });
    expect(git('status', '--porcelain')).toBe(' M CHANGELOG.md\n');
    git('commit', '--quiet', '--all', '--message', 'docs: forget an entry');
    const { status, stderr } = release('--only', 'chart');
    git('reset', '--quiet', '--hard', 'HEAD^');
    expect([status, stderr]).toEqual([2, expect.stringMatching(/no entry "## \d+\.\d+\.\d+ – DATE"/)]);
  });

  it('is refused with a version that is none, and with archives that there are not', () => {
    expect(release('--to', 'next')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('three numbers') as string,
    });
    expect(release('--only', 'rpm')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('packages, mcpb') as string,
    });
  });

  it('has notes of the changelog, and the sums of its archives', () => {
    announce();
    appendFileSync(join(clone, 'CHANGELOG.md'), '\n## 2.3.3 – 2026-01-01\n\nWhat was old.\n');
    release('--to', '2.3.4');
    git('commit', '--quiet', '--all', '--message', 'chore: release 2.3.4');
    const { status, stderr, stdout } = release('--only', 'chart');
    expect([status, stderr]).toEqual([0, '']);
    const archive = readFileSync(join(clone, 'dist/packages/parley-chart-2.3.4.tgz'));
    const sum = createHash('sha256').update(archive).digest('hex');
    const notes = read('dist/packages/NOTES.md');
    expect(notes).toContain('# Parley 2.3.4\n\nWhat is new.\n');
    expect(notes).not.toContain('What was old');
    expect(notes).toContain(`${sum}  parley-chart-2.3.4.tgz`);
    expect(stdout).toContain(`git tag v2.3.4 ${git('rev-parse', 'HEAD').trim()}`);
  });
});
