import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** A process of the fleet, which ends with it. */
export class Child {
  private constructor(
    private readonly process: ChildProcess,
    /** What it said when it was ready. */
    readonly address: string,
  ) {}

  get pid(): number {
    return this.process.pid ?? 0;
  }

  /** @param ready what it says when it is; undefined: nothing is waited for. @throws when it ends before */
  static async start(
    command: readonly [string, ...string[]],
    { ready, env = {} }: { readonly ready?: RegExp; readonly env?: Record<string, string> },
  ): Promise<Child> {
    const [program, ...args] = command;
    const child = spawn(program, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', ready ? 'pipe' : 'inherit', 'inherit'],
    });
    process.once('exit', () => child.kill('SIGKILL'));
    if (!ready) {
      await once(child, 'spawn');
      return new Child(child, '');
    }
    return new Promise((resolve, reject) => {
      let output = '';
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`${program} ended with ${code}`)));
      child.stdout?.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        const found = ready.exec(output);
        if (found) resolve(new Child(child, found[1] ?? ''));
      });
    });
  }

  signal(name: NodeJS.Signals): void {
    this.process.kill(name);
  }

  /** Asks it to end and waits until it did, so that what it was doing is done. */
  async stop(): Promise<void> {
    const { exitCode, signalCode } = this.process;
    if (exitCode !== null || signalCode !== null) return;
    const ended = once(this.process, 'exit');
    this.process.kill('SIGTERM');
    await ended;
  }
}
