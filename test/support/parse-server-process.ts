import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** A Parse Server running in its own process, with what is needed to talk to it. */
export interface ParseServerProcess {
  readonly url: string;
  readonly liveQueryUrl: string;
  readonly appId: string;
  readonly masterKey: string;
  readonly restAPIKey: string;
  /** Calls the REST API; with `session` as that user, with `master: true` past all permissions. */
  call(method: string, path: string, options?: CallOptions): Promise<ParseAnswer>;
  close(): Promise<void>;
}

interface CallOptions {
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly session?: string;
  readonly master?: boolean;
}

/** A REST answer; Parse answers refusals with `code` and `error`. */
interface ParseAnswer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

const entry = fileURLToPath(new URL('../oracles/parse-server.mjs', import.meta.url));
const installed = fileURLToPath(new URL('../oracles/node_modules/parse-server', import.meta.url));

/** Starts Parse Server against a database. `options` are its own options, `liveQueryClasses`, `liveQueryKeyPairs` and `port`. */
export async function startParseServer(
  databaseUri: string,
  options: Readonly<Record<string, unknown>> = {},
): Promise<ParseServerProcess> {
  if (!existsSync(installed))
    throw new Error('Parse Server is not installed: run node tools/test-partners.mjs');
  const child = spawn(process.execPath, [entry], {
    env: { ...process.env, MONGODB_URI: databaseUri, PARSE_OPTIONS: JSON.stringify(options) },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const ready = JSON.parse(await firstLine(child)) as Omit<ParseServerProcess, 'call' | 'close'>;
  return {
    ...ready,
    call: (method, path, call = {}) => callRest(ready, method, path, call),
    close: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      if (child.kill('SIGTERM')) await ended;
    },
  };
}

/** Makes Parse Server read its classes again after they were changed behind its back: any change of classes does. */
export async function readClassesAnew(server: Pick<ParseServerProcess, 'call'>): Promise<void> {
  const scratch = '/schemas/ReadAnew';
  for (const method of ['POST', 'DELETE']) {
    const body = method === 'POST' ? { className: 'ReadAnew' } : undefined;
    const { status } = await server.call(method, scratch, { master: true, body });
    if (status !== 200) throw new Error(`${method} ${scratch} answered ${status}`);
  }
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let complaints = '';
    child.stderr?.on('data', (chunk: Buffer) => (complaints = (complaints + chunk.toString()).slice(-4_000)));
    child.once('exit', (code) => reject(new Error(`Parse Server ended with ${code}: ${complaints}`)));
    if (child.stdout) createInterface({ input: child.stdout }).once('line', resolve);
  });
}

async function callRest(
  server: Omit<ParseServerProcess, 'call' | 'close'>,
  method: string,
  path: string,
  { body, query = {}, session, master }: CallOptions,
): Promise<ParseAnswer> {
  const url = new URL(server.url + path);
  for (const [name, value] of Object.entries(query)) {
    url.searchParams.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  }
  const headers = {
    'Content-Type': 'application/json',
    'X-Parse-Application-Id': server.appId,
    'X-Parse-REST-API-Key': server.restAPIKey,
    ...(session === undefined ? {} : { 'X-Parse-Session-Token': session }),
    ...(master ? { 'X-Parse-Master-Key': server.masterKey } : {}),
  };
  // A connection of its own for each: none that the server is about to close is used again.
  const sent = request(url, { method, headers, agent: false });
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, body: (await json(response)) as Record<string, unknown> };
}
