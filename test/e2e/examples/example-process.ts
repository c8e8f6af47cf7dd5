import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { makeFolder } from '../../support/started.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const LISTENING = /listening on (\S+)/;

/** One of examples/, started by the command in its README. */
export interface Example {
  /** Where it says that it listens. */
  readonly origin: string;
  output(): string;
  signal(name: NodeJS.Signals): void;
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/** A program of an example as a command line, for a shell. */
export const program = (name: string) => `'${process.execPath}' '${join(root, 'tools/example.mjs')}' ${name}`;

/** Waits until it says where it listens. @throws with all that it said when it ends instead */
export async function startExample(name: string, env: Record<string, string> = {}): Promise<Example> {
  const { PATH = '', HOME = '', PARLEY_BUILT = '' } = process.env;
  const child: ChildProcess = spawn(process.execPath, ['tools/example.mjs', name], {
    cwd: root,
    env: { PATH, HOME, PARLEY_BUILT, PORT: '0', NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const kill = () => void child.kill('SIGTERM');
  process.once('exit', kill);
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  let output = '';
  const origin = await new Promise<string>((resolve, reject) => {
    const hear = (chunk: Buffer) => {
      output += chunk.toString();
      const found = LISTENING.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    };
    child.stdout?.on('data', hear);
    child.stderr?.on('data', hear);
    void ended.then(() => reject(new Error(`the example ended:\n${output}`)));
  });
  return {
    origin,
    output: () => output,
    signal: (signal) => void child.kill(signal),
    ended,
    stop: async () => {
      process.removeListener('exit', kill);
      kill();
      await ended;
    },
  };
}

interface Shown {
  readonly command: string;
  /** What the README says comes out; `…` stands for anything. */
  readonly documented: string;
}

/** Whether a shell would wait for more: a quotation, or a line that says that it goes on. */
const goesOn = (text: string) =>
  text.endsWith('\\') || (text.replaceAll(/"[^"']*'[^"']*"/g, '').match(/'/g)?.length ?? 0) % 2 === 1;

/** The commands of the `console` blocks: lines after `$ `, with those they go on in, and what follows them. */
function commandsOf(readme: string): Shown[] {
  const blocks = [...readme.matchAll(/^```console\n([^]*?)^```/gm)].map(([, block = '']) => block);
  const parts = blocks.flatMap((block) => block.split(/^\$ /m).filter((part) => part.trim() !== ''));
  return parts.map((part) => {
    const lines = part.split('\n');
    let end = 1;
    while (end < lines.length && goesOn(lines.slice(0, end).join('\n'))) end += 1;
    return { command: lines.slice(0, end).join('\n'), documented: lines.slice(end).join('\n').trim() };
  });
}

const MARK = 'what-the-next-command-says';

/** As `followPage`, for the README of an example. */
export const followReadme = (
  name: string,
  replaced: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
) => followPage(`examples/${name}/README.md`, replaced, env);

/**
 * Types every command of a page into one shell, in a folder of its own.
 * @param replaced what the page says, and what it is here: addresses above all.
 * @param part of the page that is followed. Default: the whole
 * @returns the documented and the actual output, side by side; in the latter, what `…` stood for is `…` again
 */
export async function followPage(
  path: string,
  replaced: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
  part: (page: string) => string = (page) => page,
): Promise<{ readonly command: string; readonly documented: string; readonly actual: string }[]> {
  let page = part(readFileSync(join(root, path), 'utf8'));
  for (const [from, to] of Object.entries(replaced)) {
    if (!page.includes(from)) throw new Error(`${path} does not say '${from}'`);
    page = page.replaceAll(from, to);
  }
  const commands = commandsOf(page);
  const folder = makeFolder('readme');
  const script = commands.map(({ command }) => `${command}\necho; echo ${MARK}`).join('\n');
  const { stdout } = await promisify(execFile)('bash', ['-c', script], {
    cwd: folder,
    env: { ...process.env, ...env },
  });
  const answers = stdout.split(`${MARK}\n`);
  return commands.map(({ command, documented }, at) => {
    const answer = (answers[at] ?? '').trim();
    return { command, documented, actual: matches(documented, answer) ? documented : answer };
  });
}

function matches(documented: string, answer: string): boolean {
  const parts = documented.split('…').map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*')}$`).test(answer);
}
