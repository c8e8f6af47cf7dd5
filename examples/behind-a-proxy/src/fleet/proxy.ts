import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Child } from './child.js';

/** Milliseconds that requests on their way have when a replica leaves the rotation; streams may last longer. */
const SETTLE = 3000;

const SELF_SIGNED =
  'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 ' +
  '-subj /CN=parley.test -addext subjectAltName=DNS:parley.test';

/** nginx with the configuration beside this example, in a folder of its own. */
export class Proxy {
  private nginx: Child | undefined;
  readonly folder = mkdtempSync(join(tmpdir(), 'behind-a-proxy-'));
  readonly certificate = join(this.folder, 'certificate.pem');

  constructor(private readonly port: number) {
    copyFileSync('nginx.conf', join(this.folder, 'nginx.conf'));
    writeFileSync(join(this.folder, 'listen.conf'), `listen 127.0.0.1:${port} ssl;\n`);
    const files = ['-keyout', join(this.folder, 'key.pem'), '-out', this.certificate];
    execFileSync('openssl', [...SELF_SIGNED.split(' '), ...files], { stdio: 'ignore' });
  }

  get origin(): string {
    return `https://parley.test:${this.port}`;
  }

  /** @param addresses of the replicas that get requests from now on */
  async rotate(addresses: readonly string[]): Promise<void> {
    const servers = addresses.map((address) => `  server ${address};`).join('\n');
    writeFileSync(join(this.folder, 'upstream.conf'), `upstream parley {\n${servers}\n}\n`);
    if (!this.nginx) {
      const asRoot = process.getuid?.() === 0 ? ' user root;' : '';
      const globals = `daemon off; pid ${join(this.folder, 'nginx.pid')};${asRoot}`;
      const command = [
        '-p',
        this.folder,
        '-c',
        join(this.folder, 'nginx.conf'),
        '-e',
        'stderr',
        '-g',
        globals,
      ];
      this.nginx = await Child.start(['nginx', ...command], {});
      while (!(await this.accepts())) await sleep(20);
      return;
    }
    const old = workersOf(this.nginx.pid);
    this.nginx.signal('SIGHUP');
    // The old workers know the old rotation: what they took has to be on its way before a replica may end.
    while (old.some((pid) => stateOf(pid) === 'serving')) await sleep(20);
    const until = Date.now() + SETTLE;
    while (old.some((pid) => stateOf(pid) !== 'gone') && Date.now() < until) await sleep(20);
  }

  private async accepts(): Promise<boolean> {
    const socket = connect(this.port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      return true;
    } catch {
      return false;
    } finally {
      socket.destroy();
    }
  }

  async stop(): Promise<void> {
    await this.nginx?.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The ids of its workers. */
function workersOf(master: number): string[] {
  return readFileSync(`/proc/${master}/task/${master}/children`, 'utf8').trim().split(' ').filter(Boolean);
}

/** nginx says in the title of a worker that it takes nothing more. */
function stateOf(pid: string): 'serving' | 'ending' | 'gone' {
  const title = `/proc/${pid}/cmdline`;
  if (!existsSync(title)) return 'gone';
  try {
    const text = readFileSync(title, 'utf8');
    if (text === '') return 'gone';
    return text.includes('shutting down') ? 'ending' : 'serving';
  } catch {
    return 'gone';
  }
}
