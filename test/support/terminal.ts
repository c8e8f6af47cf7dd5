import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const COMMANDS = fileURLToPath(new URL('../../dist/bundle/cli.js', import.meta.url));

export interface CommandOptions {
  readonly cwd: string;
  readonly env?: Record<string, string>;
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function environment(env: Record<string, string> = {}): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH, HOME, TERM: 'xterm', ...env };
}

/** Runs a command to its end with pipes in the place of a terminal. */
export function runCommand(
  args: readonly string[],
  input: string,
  { cwd, env }: CommandOptions,
): Promise<Ended> {
  const child = spawn(process.execPath, [COMMANDS, ...args], { cwd, env: environment(env) });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdin.on('error', () => undefined).end(input);
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
}

export interface TerminalSession {
  /** Everything that was shown so far, as the terminal got it; what is waited for is looked for without control sequences. */
  shown(): string;
  /** Types, and waits until what follows from it is shown; returns what was shown since. */
  type(text: string, until: string | RegExp): Promise<string>;
  waitFor(what: string | RegExp): Promise<string>;
  readonly ended: Promise<number | null>;
  kill(): void;
}

/** Colours, cursor movements of the line editor and the progress line, and bracketed paste. */
const LINE_EDITING = /\u001b\[(?:[\d;]*[mGJKCD]|\?2004[hl])/g;

/**
 * Runs a command in a pseudo-terminal, as a person would.
 * @param before what runs the command, such as `setsid`
 */
export function startInTerminal(
  args: readonly string[],
  { cwd, env }: CommandOptions,
  before: readonly string[] = [],
): TerminalSession {
  const command = [...before, process.execPath, COMMANDS, ...args].map((word) => `'${word}'`).join(' ');
  // util-linux: -e returns the exit code of the command, -f shows its output at once.
  const child: ChildProcess = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd,
    env: environment({ SHELL: '/bin/sh', ...env }),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let raw = '';
  let seen = 0;
  const text = () => raw.replace(LINE_EDITING, '');
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  let over = false;
  void ended.then(() => (over = true));
  child.stdout?.setEncoding('utf8').on('data', (part: string) => (raw += part));
  const waitFor = async (what: string | RegExp) => {
    const from = seen;
    for (;;) {
      const since = text().slice(from);
      const found = typeof what === 'string' ? since.indexOf(what) : since.search(what);
      if (found >= 0) {
        const length = typeof what === 'string' ? what.length : (what.exec(since)?.[0].length ?? 0);
        seen = from + found + length;
        return text().slice(from, seen);
      }
      if (over) throw new Error(`the command ended without showing ${String(what)}:\n${since}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  return {
    shown: () => raw,
    type: (typed, until) => {
      seen = text().length;
      child.stdin?.write(typed);
      return waitFor(until);
    },
    waitFor,
    ended,
    kill: () => child.kill('SIGKILL'),
  };
}
