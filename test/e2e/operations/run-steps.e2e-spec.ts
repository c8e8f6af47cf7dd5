import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));

interface Step {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly after?: readonly string[];
  readonly behind?: readonly string[];
  readonly waits?: boolean;
  readonly limit?: number;
}

let runSteps: (steps: readonly Step[], options: { cwd: string }) => Promise<string[]>;
beforeAll(async () => {
  const path = join(root, 'tools', 'run-steps.mjs');
  ({ runSteps } = (await import(pathToFileURL(path).href)) as { runSteps: typeof runSteps });
});
afterEach(() => void vi.restoreAllMocks());

const step = (name: string, status: number, more: Partial<Step> = {}): Step => ({
  name,
  command: process.execPath,
  args: ['-e', `process.exit(${status})`],
  ...more,
});

/** @returns the steps that failed, and the lines about ends in their order */
async function tried(steps: readonly Step[]): Promise<{ failed: string[]; lines: string[] }> {
  const lines: string[] = [];
  vi.spyOn(console, 'log').mockImplementation(
    (line: string) => void lines.push(line.replace(/ \([\d.]+ s\)$/, '')),
  );
  return { failed: await runSteps(steps, { cwd: root }), lines };
}

describe('the steps of npm test', () => {
  it('do not run after one that failed, and count as failed', async () => {
    const { failed, lines } = await tried([step('check', 0, { after: ['build'] }), step('build', 1)]);
    expect(lines).toEqual(['FAIL build', 'FAIL check (not run)']);
    expect(failed).toEqual(['build', 'check']);
  });

  it('run behind one that failed, once it has ended', async () => {
    const steps = [step('tests', 0, { behind: ['build', 'check'] }), step('build', 1)];
    const { failed, lines } = await tried([...steps, step('check', 0, { after: ['build'] })]);
    expect(lines).toEqual(['FAIL build', 'FAIL check (not run)', 'ok   tests']);
    expect(failed).toEqual(['build', 'check']);
  });

  it('fail when their program is missing', async () => {
    const { failed } = await tried([{ name: 'lint', command: join(root, 'no-such-program'), args: [] }]);
    expect(failed).toEqual(['lint']);
  });

  /** A program that starts another which holds its output and never ends. */
  const withChild = (then: string) => [
    '-e',
    `require('node:child_process').spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'inherit' });${then}`,
  ];

  it('fail at their limit, with all that they started', async () => {
    const { failed, lines } = await tried([step('hangs', 0, { args: withChild('for (;;);'), limit: 500 })]);
    expect(failed).toEqual(['hangs']);
    expect(lines).toEqual(['FAIL hangs']);
  });

  it('end although something that they started does not', async () => {
    const { failed } = await tried([step('leaves', 0, { args: withChild('process.exit(0);') })]);
    expect(failed).toEqual([]);
  });

  it.each(['after', 'behind'])('cannot wait with `%s` for one that is not there', async (member) => {
    await expect(tried([step('check', 0, { [member]: ['biuld'] })])).rejects.toThrow(
      "step 'check' waits for one that is not there",
    );
  });
});
