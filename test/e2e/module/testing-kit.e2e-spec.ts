import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const suites = join(root, 'test/fixtures/testing-kit');

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A runner of its own, and whatever it says. */
function run(...args: readonly string[]): Promise<Ended> {
  const { NODE_OPTIONS: _, VITEST: __, NODE_TEST_CONTEXT: ___, ...env } = process.env;
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: suites, env }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr });
    });
  });
}

describe('the built test kit', () => {
  it('runs under node:test, and fails what does not hold with a message to read', async () => {
    const { code, stdout } = await run('--test', '--test-reporter=tap', 'with-node-test.mjs');
    expect(stdout).toMatch(/^# pass 2$/m);
    expect(stdout).toMatch(/^# fail 1$/m);
    expect(stdout).toContain("instead   refused with access_denied (hidden_class) by the gate 'class'");
    expect(code).toBe(1);
  });

  it('runs under vitest, and fails what does not hold with a message to read', async () => {
    const vitest = join(root, 'node_modules/vitest/vitest.mjs');
    const { code, stdout } = await run(vitest, 'run', '--reporter=json');
    const report = JSON.parse(stdout.slice(stdout.indexOf('{'))) as Record<string, unknown>;
    expect(report).toMatchObject({ numPassedTests: 2, numFailedTests: 1 });
    expect(JSON.stringify(report)).toContain("(hidden_class) by the gate 'class'");
    expect(code).toBe(1);
  });

  it('lets the process end by itself, and says nothing in its log', async () => {
    const { code, stdout, stderr } = await run('ends.mjs');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({ opened: expect.any(Number) as number });
  });
});
