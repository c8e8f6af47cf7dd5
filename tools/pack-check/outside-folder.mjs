// A folder far from the repository, which knows the packages by their archives alone.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Milliseconds after which something hangs. */
const BOUND = 180_000;

/** What a shell of the application would know: nothing of the environment that this check was started in. */
const environment = (env = {}) => ({ PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: '1', ...env });

export class OutsideFolder {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'parley-pack-'));
  }

  write(file, content) {
    writeFileSync(join(this.folder, file), JSON.stringify(content, null, 2));
  }

  /** As its team would: without a lockfile, from the cache of this machine where it can. */
  install() {
    return this.run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']);
  }

  /** @returns {{ status: number | null, output: string, stdout: string }} */
  run(command, args, { cwd = this.folder, env = {} } = {}) {
    const file = command.startsWith('node_modules') ? join(this.folder, command) : command;
    const { status, stdout, stderr, error } = spawnSync(file, args, {
      cwd,
      env: environment(env),
      encoding: 'utf8',
      timeout: BOUND,
    });
    return { status, stdout, output: `${stdout}${stderr}${error ?? ''}` };
  }

  /** Runs what ends by itself, or begins to listen. @returns {Promise<{ url: string | null, output: () => string, stop: () => Promise<number | null> }>} */
  async start(node, args, { cwd = this.folder, env = {} } = {}) {
    const child = spawn(node, args, { cwd, env: environment(env), stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const ended = new Promise((resolve) => child.once('close', (code) => resolve(code)));
    const url = await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`neither listens nor ends:\n${output}`)), BOUND);
      const settle = (found) => (clearTimeout(late), resolve(found));
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk) => {
          output += chunk;
          const found = /listening on (https?:\S+)/.exec(output)?.[1];
          if (found) settle(found);
        });
      child.once('error', reject);
      void ended.then(() => settle(null));
    });
    const stop = async () => {
      child.kill('SIGTERM');
      return ended;
    };
    return { url, output: () => output, stop };
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
