import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../tools/free-port.mjs';
import type { Service } from './service.js';
import { makeFolder } from './started.js';

/** The real nginx with the configuration that is shipped; only addresses and its own folders differ. */
export interface Nginx {
  readonly url: string;
  readonly origin: string;
  errors(): string;
  stop(): Promise<void>;
}

function settings(folder: string, port: number, replicas: readonly Pick<Service, 'origin'>[]): string {
  let shipped = readFileSync(new URL('../../deploy/nginx/parley.conf', import.meta.url), 'utf8');
  const replace = (from: string, to: string) => {
    if (!shipped.includes(from)) throw new Error(`the shipped configuration has no '${from}'`);
    shipped = shipped.replaceAll(from, to);
  };
  replace('listen 8080;', `listen 127.0.0.1:${port};`);
  const [, second = ''] = /^( *server parley-2:3001 .*)$/m.exec(shipped) ?? [];
  // One line for each replica, as an operator writes them.
  const more = replicas.slice(2).map((_, at) => second.replace('parley-2', `parley-${at + 3}`));
  replace(second, [second, ...more].join('\n'));
  for (const [at, { origin }] of replicas.entries())
    replace(`server parley-${at + 1}:3001 `, `server ${new URL(origin).host} `);
  writeFileSync(join(folder, 'parley.conf'), shipped);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return [
    'daemon off;',
    'worker_processes 2;',
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    `pid ${join(folder, 'nginx.pid')};`,
    'error_log stderr warn;',
    'events {}',
    'http {',
    'access_log off;',
    ...temporary.map((name) => `${name}_temp_path ${join(folder, name)};`),
    `include ${join(folder, 'parley.conf')};`,
    '}',
  ].join('\n');
}

/** @throws when nginx is not installed (`node tools/test-partners.mjs` does it where it may) */
export async function startNginx(replicas: readonly Pick<Service, 'origin'>[]): Promise<Nginx> {
  const folder = makeFolder('nginx');
  const port = await freePort();
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, settings(folder, port, replicas));
  const child = spawn('nginx', ['-p', folder, '-c', file, '-e', 'stderr'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const kill = () => void child.kill('SIGTERM');
  process.once('exit', kill);
  const origin = `http://127.0.0.1:${port}`;
  const listens = async (): Promise<void> => {
    for (;;) {
      if (
        await fetch(`${origin}/health`).then(
          ({ ok }) => ok,
          () => false,
        )
      )
        return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  await Promise.race([
    listens(),
    new Promise<never>((_, reject) => {
      child.once('error', (error) => reject(new Error(`nginx cannot be started: ${error.message}`)));
      child.once('exit', (code) => reject(new Error(`nginx ended with ${code}:\n${errors}`)));
    }),
  ]);
  return {
    url: `${origin}/mcp`,
    origin,
    errors: () => errors,
    stop: async () => {
      process.removeListener('exit', kill);
      kill();
      await ended;
    },
  };
}
