import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { CommandOptions, Ended } from './terminal.js';

const COMMANDS = fileURLToPath(new URL('./commands-in-turn.mjs', import.meta.url));
/** Nothing that a command writes: control characters are neutralised. */
const END = '\u0000ended ';

export interface CommandsInTurn {
  /** Runs `parley …` after those that were asked for before. It finds no terminal, and an empty standard input. */
  run(args: readonly string[], options: CommandOptions): Promise<Ended>;
  stop(): Promise<void>;
}

/** What is printed until the end is reported, and the exit code that is reported with it. */
function untilEnd(stream: Readable): Promise<{ text: string; code: number }> {
  return new Promise((resolve) => {
    let text = '';
    const hear = (chunk: string) => {
      text += chunk;
      const at = text.indexOf(END);
      if (at < 0 || !text.endsWith('\n')) return;
      stream.off('data', hear);
      resolve({ text: text.slice(0, at), code: Number(text.slice(at + END.length)) });
    };
    stream.on('data', hear);
  });
}

/** The command line for tests of what commands say; a process of its own for each, as people start them, is `runCommand`. */
export function commandsInTurn(): CommandsInTurn {
  const child = fork(COMMANDS, [], { execArgv: [], stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  const [stdout, stderr] = [child.stdout, child.stderr] as [Readable, Readable];
  for (const stream of [stdout, stderr]) stream.setEncoding('utf8');
  const gone = once(child, 'exit').then(() => Promise.reject(new Error('the process of the commands ended')));
  gone.catch(() => undefined);
  let before: Promise<unknown> = Promise.resolve();
  const started = (args: readonly string[], { cwd, env }: CommandOptions): Promise<Ended> => {
    const { PATH = '', HOME = '' } = process.env;
    const output = Promise.all([untilEnd(stdout), untilEnd(stderr)]);
    child.send({ args, cwd, end: END, env: { PATH, HOME, ...env } });
    return Promise.race([output, gone]).then(([out, err]) => ({
      code: out.code,
      stdout: out.text,
      stderr: err.text,
    }));
  };
  return {
    run: (args, options) => {
      const ended = before.then(() => started(args, options));
      before = ended.catch(() => undefined);
      return ended;
    },
    stop: async () => {
      if (child.connected) child.disconnect();
      await gone.catch(() => undefined);
    },
  };
}
