import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as fc from 'fast-check';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { makeFolder } from '../../support/started.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const PARTS = join(root, 'test', 'fixtures', 'proof-parts');
const folder = makeFolder('proof');

const proof = (...args: string[]) =>
  spawnSync(process.execPath, [join(root, 'tools', 'proof.mjs'), ...args], { encoding: 'utf8', cwd: root });
const ofParts = (...args: string[]) => proof('--from', PARTS, '--report', folder, ...args);

interface Part {
  readonly name: string;
  readonly losses: readonly string[];
  readonly figures: readonly { readonly name: string; readonly value: number }[];
}

describe('npm run proof', () => {
  it.each([
    [['--minuets', '3'], 'Options are: --minutes'],
    [['--minutes', 'long'], "--minutes takes a number above 0, such as 5 or 0.5; it was 'long'"],
    [['--minutes', '1', '--brief'], '--minutes and --brief exclude each other'],
    [['--seed', '-1.5'], '--seed'],
    [['--part', 'nothing'], "there is no part 'nothing'; parts are lasts, loses, passes, throws"],
    [['--from', '/nowhere'], '--from takes a folder with parts'],
  ])('refuses wrong options with exit code 2 and says what to write: %s', (args, sentence) => {
    const { status, stderr } = ofParts(...args);
    expect(status).toBe(2);
    expect(stderr).toContain(sentence);
  });

  it('lists its parts with their titles, and the parts of the project are of their form', () => {
    const { status, stdout } = proof('--help');
    expect(status).toBe(0);
    for (const name of ['chaos', 'chaos-processes', 'neighbours', 'soak'])
      expect(stdout).toMatch(new RegExp(`^ {2}${name} `, 'm'));
  });

  it('passes when no part loses anything, and hands the seed on', () => {
    const { status, stdout } = ofParts('--part', 'passes', '--seed', '7');
    expect(stdout).toContain('passes: runs for 0.01 with 7');
    expect(status).toBe(0);
    const report = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'));
    expect(report).toMatchObject({ seed: 7, losses: 0, machine: { node: process.version } });
    expect(report.commit).toMatch(/^[0-9a-f]{40}|unknown/);
  });

  describe('with parts that lose', () => {
    let status: number | null;
    let stdout: string;
    let parts: readonly Part[];
    beforeAll(() => {
      ({ status, stdout } = ofParts('--brief', '--seed', '1'));
      ({ parts } = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')));
    });

    it('runs every part that has a brief form, names the others, and exits 1', () => {
      expect(status).toBe(1);
      expect(stdout).toContain('not run: lasts has no brief form');
      expect(parts.map(({ name }) => name)).toEqual(['loses', 'passes', 'throws']);
      expect(stdout).toMatch(/^FAIL loses .*\n[^]*^ok {3}passes .*\n[^]*^FAIL throws /m);
    });

    it('counts a broken bound, and a figure that is no number, as a loss', () => {
      expect(stdout).toContain('LOSS a session was lost');
      expect(stdout).toContain('LOSS p95 is 12 ms; at most 10 was promised');
      expect(parts[0]?.losses.join()).toContain("returned under 'figures' what is not of its form");
      expect(parts[0]?.figures.map(({ name }) => name)).toEqual(['p95']);
    });

    it('counts a part that cannot run as a loss that says what is missing', () => {
      expect(stdout).toContain('nginx is missing: install the package `nginx`');
    });

    it('writes a page without scripts, requests or unescaped text', () => {
      const page = readFileSync(join(folder, 'report.html'), 'utf8');
      expect(page).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`);
      expect(page).toContain('Passes &lt;b&gt;well&lt;/b&gt;');
      expect(page).toContain('<polyline points=');
      expect(page).not.toMatch(/<script|<b>|<i>|<link|<img|<a |url\(/);
      expect(page).not.toMatch(/(?:src|href)="/);
    });
  });
});

describe('a part that does not end', () => {
  const HANGS = join(root, 'test', 'fixtures', 'proof-hang');
  const isAlive = (pid: number) => {
    try {
      process.kill(pid, 0);
      return true;
    } catch {
      return false;
    }
  };

  /** Starts the command, and resolves once its part has started a process and left a file. */
  async function begun(): Promise<{
    command: ChildProcess;
    pid: number;
    file: string;
    output: () => string;
  }> {
    const args = [join(root, 'tools', 'proof.mjs'), '--from', HANGS, '--report', folder];
    const command = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    const left = await new Promise<{ pid: number; file: string }>((resolve) => {
      createInterface({ input: command.stdout }).on('line', (line) => {
        output += `${line}\n`;
        const text = /hangs: (\{.*\})$/.exec(line)?.[1];
        if (text !== undefined) resolve(JSON.parse(text) as { pid: number; file: string });
      });
    });
    return { command, ...left, output: () => output };
  }

  it('is a loss, and leaves no process and no file when the command is stopped twice', async () => {
    const { command, pid, file, output } = await begun();
    expect({ alive: isAlive(pid), left: existsSync(file) }).toEqual({ alive: true, left: true });
    const ended = once(command, 'close');
    command.kill('SIGTERM');
    await vi.waitFor(() => expect(output()).toContain('once more stops at once'), 30_000);
    command.kill('SIGTERM');
    expect(await ended).toEqual([1, null]);
    expect(output()).toContain('LOSS was stopped, did not end and was killed');
    expect(existsSync(file)).toBe(false);
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), 30_000);
  });

  it('is ended with all that it started when the command itself is killed', async () => {
    const { command, pid, file } = await begun();
    command.kill('SIGKILL');
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), 30_000);
    rmSync(dirname(file), { recursive: true });
  });
});

interface Result {
  readonly losses: readonly string[];
  readonly figures: readonly unknown[];
  readonly series: readonly unknown[];
  readonly notes: readonly string[];
}

describe('what a part returns', () => {
  let shown: (result: unknown) => Result;
  let printable: (text: string) => string;
  beforeAll(async () => {
    const path = join(root, 'test', 'proof', 'support', 'results.mjs');
    ({ shown, printable } = (await import(pathToFileURL(path).href)) as {
      shown: typeof shown;
      printable: typeof printable;
    });
  });
  const tried = { name: 'calls', value: 3, unit: '', atLeast: 1 };
  const good = { losses: [], figures: [tried], series: [], notes: [] };

  it('passes with a figure that shows that something was tried', () => {
    expect(shown(good)).toEqual(good);
  });

  it.each([
    ['nothing', null],
    ['a text', 'all is well'],
    ['an empty object', {}],
    ['lists that are none', { ...good, losses: 'none' }],
    ['no figure', { ...good, figures: [] }],
    ['figures without a least value', { ...good, figures: [{ name: 'calls', value: 0, unit: '' }] }],
    ['a figure that is no number', { ...good, figures: [tried, { name: 'p95', value: null, atMost: 1 }] }],
    ['a bound that is no number', { ...good, figures: [tried, { name: 'p95', value: 1, atMost: null }] }],
    ['a chart without lines', { ...good, series: [{ title: 'a', unit: '', lines: [null] }] }],
    [
      'a chart with points that are none',
      { ...good, series: [{ title: 'a', unit: '', lines: [{ name: 'x', points: [null, ['<b>', 1]] }] }] },
    ],
  ])('is a loss when it is %s', (_what, result) => {
    expect(shown(result).losses).not.toEqual([]);
  });

  it('can neither move the cursor of a terminal nor begin a line of the report', () => {
    const signs = fc.constantFrom(
      '\u001B[2J',
      '\u009B',
      '\u0000',
      '\r',
      '\n',
      '\u202E',
      '\u2028',
      'ok   ',
      '<',
    );
    fc.assert(
      fc.property(fc.string({ unit: signs }), (text) => {
        for (const line of printable(`LOSS ${text}`).split('\n').slice(1)) expect(line).toMatch(/^ {7}/);
        expect(printable(text).replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      }),
    );
  });
});

interface Trend {
  readonly slope: number;
  readonly low: number;
  readonly high: number;
}

describe('the slope of samples', () => {
  let slope: (points: readonly (readonly [number, number])[]) => Trend;
  beforeAll(async () => {
    const path = join(root, 'test', 'proof', 'support', 'regression.mjs');
    ({ slope } = (await import(pathToFileURL(path).href)) as { slope: typeof slope });
  });

  /** Noise between -1 and 1, the same for a seed. */
  const noise = (seed: number) => {
    let state = seed >>> 0;
    return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 31 - 1;
  };
  const samples = (seed: number, count: number, growth: number) => {
    const next = noise(seed);
    return Array.from({ length: count }, (_, at) => [at, 100 + growth * at + next()] as const);
  };

  it('is certain of growth that stands out of the noise, and names it', () => {
    fc.assert(
      fc.property(fc.nat(), fc.double({ min: 0.05, max: 5, noNaN: true }), (seed, growth) => {
        const trend = slope(samples(seed, 120, growth));
        expect(trend.low).toBeGreaterThan(0);
        expect(trend.slope).toBeCloseTo(growth, 1);
      }),
    );
  });

  it('holds the true slope within its interval in about 95 of 100 runs', () => {
    const held = Array.from({ length: 1_000 }, (_, seed) => slope(samples(seed * 7_919 + 1, 60, 0.01)));
    const share = held.filter(({ low, high }) => low <= 0.01 && 0.01 <= high).length / held.length;
    expect(share).toBeGreaterThan(0.92);
  });

  it('is not certain of growth in what only rises and falls', () => {
    const saw = Array.from({ length: 120 }, (_, at) => [at, 100 + (at % 25)] as const);
    const { low, high } = slope(saw);
    expect(low).toBeLessThan(0);
    expect(high).toBeGreaterThan(0);
  });
});
