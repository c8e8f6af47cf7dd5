import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, type AddressInfo } from 'node:net';

/** A separate Redis for one spec file, reachable from this machine only, without persistence. */
export interface RedisServer {
  readonly url: string;
  /** Stops it at once; its data is lost. */
  stop(): Promise<void>;
  /** Starts it on the same address again, without data. */
  start(): Promise<void>;
  /** Keeps its connections open and answers nothing until `resume`. */
  pause(): void;
  resume(): void;
}

export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** Options of `redis-server` as its command line has them. */
export function toArguments(options: Readonly<Record<string, string | number>>): string[] {
  return Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

/** Starts `redis-server` and waits until it accepts connections. */
export function launch(port: number, extra: readonly string[]): Promise<ChildProcess> {
  const usual = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', [...usual, ...extra], { stdio: ['ignore', 'pipe', 'ignore'] });
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes('Ready to accept connections')) resolve(child);
    });
    child.once('error', (error) => reject(new Error(`redis-server cannot be started: ${error.message}`)));
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}:\n${output}`)));
  });
}

export const waitForExit = (child: ChildProcess) =>
  new Promise<void>((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once('exit', () => resolve());
  });

/**
 * Starts it at a free port: another process may take that in between, then one more attempt is made.
 * @param toOptions what it is started with at a port
 */
export async function launchAtFreePort(
  toOptions: (port: number) => readonly string[] | Promise<readonly string[]>,
): Promise<{ port: number; child: ChildProcess; options: readonly string[] }> {
  const attempt = async () => {
    const port = await freePort();
    const options = await toOptions(port);
    return { port, options, child: await launch(port, options) };
  };
  return attempt().catch(attempt);
}

/**
 * @param extra options of `redis-server` besides the usual ones
 * @throws when `redis-server` is not installed (`node tools/test-partners.mjs` does it where it may)
 */
export async function startRedis(extra: readonly string[] = []): Promise<RedisServer> {
  const launched = await launchAtFreePort(() => extra);
  const { port } = launched;
  let { child } = launched;
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: async () => {
      process.removeListener('exit', kill);
      kill();
      await waitForExit(child);
    },
    start: async () => {
      child = await launch(port, extra);
      process.once('exit', kill);
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  };
}
