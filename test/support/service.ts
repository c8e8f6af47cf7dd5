import { type ChildProcess, spawn } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { endWithFile, makeFolder } from './started.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const READY = /Parley listening on (\S+)/;

/** The environment that permits writes of rows. */
export const WRITES_OPEN = {
  PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
  PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
};

/** The environment that permits every write, and changes of schemas. */
export const GATES_OPEN = {
  ...WRITES_OPEN,
  PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true',
  PARSE_AGENT_ALLOW_RAW_SCHEMA: 'true',
};

export interface ServiceOptions {
  /** Configuration without `server.port`, which is always a free one. */
  readonly config?: Record<string, unknown>;
  readonly seed?: unknown;
  readonly env?: Record<string, string>;
  /** What is done to the service while it starts. */
  readonly starting?: (service: Pick<Service, 'reconfigure' | 'signal'>) => Promise<void>;
}

/** The real service in a process of its own, as `npm start` runs it. */
export interface Service {
  readonly url: string;
  readonly origin: string;
  readonly pid: number;
  /** Everything written to stdout and stderr so far. */
  output(): { readonly stdout: string; readonly stderr: string };
  isRunning(): boolean;
  /** The configuration file. */
  readonly file: string;
  /** Puts another configuration in the place of the file, in one step, as editors and deployments do. */
  reconfigure(config: Record<string, unknown>): void;
  signal(name: NodeJS.Signals): void;
  /** Its exit code, once it has ended. */
  readonly ended: Promise<number | null>;
  /** Ends the process at once, as a crash does. */
  kill(): Promise<number | null>;
  stop(): Promise<number | null>;
}

function environment(extra: Record<string, string>): Record<string, string> {
  const { PATH = '', HOME = '', EMBEDDED_MONGO_REORDER_FILTERS = '' } = process.env;
  return { PATH, HOME, EMBEDDED_MONGO_REORDER_FILTERS, ...extra };
}

function configText({ config = {}, seed }: ServiceOptions): string {
  const own = 'databases' in config;
  const database = seed === undefined || own ? {} : { database: { uri: 'embedded', seed: './seed.json' } };
  const { server, ...others } = config;
  return stringify({
    ...database,
    // Lines that people read are the easier ones to look for a record in.
    logging: { format: 'plain' },
    ...others,
    server: { drainTimeout: 5, ...(server as object | undefined), port: 0 },
  });
}

function launch(folder: string, options: ServiceOptions): ChildProcess {
  const { seed, env = {} } = options;
  if (seed !== undefined) writeFileSync(join(folder, 'seed.json'), JSON.stringify(seed));
  writeFileSync(join(folder, 'parley.yaml'), configText(options));
  return spawn(process.execPath, [join(root, 'dist', 'bundle', 'main.js')], {
    cwd: folder,
    env: environment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

const exitOf = (child: ChildProcess) =>
  new Promise<number | null>((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve(child.exitCode);
    else child.once('exit', (code) => resolve(code));
  });

const endBy = (child: ChildProcess, signal: NodeJS.Signals) => {
  child.kill(signal);
  return exitOf(child);
};

/** What a process says, and the place where it says that it listens. @throws with its stderr when it ends instead */
function watch(child: ChildProcess, ready: RegExp, name: string) {
  const said = { stdout: '', stderr: '' };
  child.stdout?.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()));
  const place = new Promise<string>((resolve, reject) => {
    child.stderr?.on('data', (chunk: Buffer) => {
      said.stderr += chunk.toString();
      const found = ready.exec(said.stderr)?.[1];
      if (found) resolve(found);
    });
    void exitOf(child).then((code) => reject(new Error(`the ${name} ended with ${code}:\n${said.stderr}`)));
  });
  return { said, place };
}

/**
 * Starts the service and waits until it says where it listens. It ends with the file at the latest.
 * @throws with its stderr when it ends instead
 */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const folder = makeFolder('service');
  const child = launch(folder, options);
  const { said, place } = watch(child, READY, 'service');
  const file = join(folder, 'parley.yaml');
  const changing: Pick<Service, 'reconfigure' | 'signal'> = {
    reconfigure: (config) => {
      writeFileSync(`${file}.new`, configText({ ...options, config }));
      renameSync(`${file}.new`, file);
    },
    signal: (name) => void child.kill(name),
  };
  const [url] = await Promise.all([place, options.starting?.(changing)]);
  const stop = () => endBy(child, 'SIGTERM');
  endWithFile(stop);
  return {
    ...changing,
    url,
    origin: new URL(url).origin,
    pid: child.pid as number,
    file,
    ended: exitOf(child),
    output: () => ({ ...said }),
    isRunning: () => child.exitCode === null && child.signalCode === null,
    kill: () => endBy(child, 'SIGKILL'),
    stop,
  };
}

export interface Database {
  readonly uri: string;
  /** The URI of another database on the same server. */
  uriOf(name: string): string;
  /** Leaves its connections open and answers nothing until `resume`. */
  pause(): void;
  resume(): void;
  stop(): Promise<number | null>;
}

/** The development database as `parley embedded` runs it, seeded. It ends with the file at the latest. @param port 0 takes a free one */
export async function startDatabase(seed: unknown, port = 0): Promise<Database> {
  const folder = makeFolder('database');
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(seed));
  const command = [
    join(root, 'dist', 'bundle', 'cli.js'),
    'embedded',
    '--port',
    String(port),
    '--seed',
    'seed.json',
  ];
  const child = spawn(process.execPath, command, {
    cwd: folder,
    env: environment({}),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const uri = await watch(child, /listening on (mongodb\S+)/, 'database').place;
  const stop = () => endBy(child, 'SIGTERM');
  endWithFile(stop);
  return {
    uri,
    uriOf: (name) => Object.assign(new URL(uri), { pathname: `/${name}` }).href,
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    stop,
  };
}

/** Starts a service that is expected not to come up; its exit code and stderr. */
export async function startAndFail(
  options: ServiceOptions,
): Promise<{ code: number | null; stderr: string }> {
  const folder = makeFolder('service');
  const child = launch(folder, options);
  const { said, place } = watch(child, READY, 'service');
  place.then(
    () => child.kill('SIGKILL'),
    () => undefined,
  );
  return { code: await exitOf(child), stderr: said.stderr };
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  // Answers are probed member by member, whatever they turn out to be.
  readonly body: Record<string, unknown> & {
    readonly error?: { code: number; message: string; data?: unknown };
  };
  readonly headers: Headers;
}

let calls = 0;
/** An id without digits or words: an answer repeats it, and tests say which numbers no answer shows. */
export const nextId = () =>
  `id-${String((calls += 1)).replace(/\d/g, (digit) => 'bcdfghjkmn'.charAt(Number(digit)))}`;

/** One JSON-RPC request of the legacy era over HTTP. */
export async function rpc(
  service: Pick<Service, 'url'>,
  method: string,
  params: unknown = {},
  headers: Record<string, string> = {},
): Promise<Answer> {
  return post(service, JSON.stringify({ jsonrpc: '2.0', id: nextId(), method, params }), headers);
}

/** Opens a session of the legacy era. @returns its headers beside those that it was opened with */
export async function openSession(
  service: Pick<Service, 'url'>,
  headers: Record<string, string> = {},
  protocolVersion = '2025-11-25',
): Promise<Record<string, string>> {
  const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
  const opened = await rpc(service, 'initialize', params, headers);
  return { ...headers, 'Mcp-Session-Id': opened.headers.get('mcp-session-id') ?? '' };
}

export async function post(
  service: Pick<Service, 'url'>,
  body: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(service.url, {
    method: 'POST',
    // One id for all: refusals carry it, and answers are compared.
    headers: { 'Content-Type': 'application/json', 'X-Request-Id': 'scenario', ...headers },
    body,
  });
  const text = await response.text();
  return {
    status: response.status,
    text,
    body: text === '' ? {} : JSON.parse(text),
    headers: response.headers,
  };
}

export interface ToolAnswer {
  readonly isError: boolean;
  readonly data: Record<string, unknown>;
  readonly text: string;
  readonly code: string | undefined;
  readonly details: Record<string, unknown> | undefined;
  /** The whole HTTP body: what must not contain a secret. */
  readonly wire: string;
  readonly rpcError: { code: number; message: string } | undefined;
}

/** What tests look at in the result of a tool. */
export function readResult(result: unknown) {
  const { isError, content, structuredContent, _meta } = (result ?? {}) as {
    isError?: boolean;
    content?: { text: string }[];
    structuredContent?: Record<string, unknown>;
    _meta?: Record<string, unknown>;
  };
  return {
    isError: isError ?? false,
    data: structuredContent ?? {},
    text: content?.[0]?.text ?? '',
    code: _meta?.['parse.error_code'] as string | undefined,
    details: _meta?.['parse.details'] as Record<string, unknown> | undefined,
  };
}

/** Calls a tool and takes the answer apart. */
export async function callTool(
  service: Pick<Service, 'url'>,
  name: string,
  args: unknown = {},
  headers: Record<string, string> = {},
): Promise<ToolAnswer> {
  const answer = await rpc(service, 'tools/call', { name, arguments: args }, headers);
  return { ...readResult(answer.body['result']), wire: answer.text, rpcError: answer.body.error };
}

const LOGGED_MEMBER = / ([\w.]+)=("(?:[^"\\]|\\.)*"|\[.*?\]|\{.*?\}|\S+)/g;

/** The members of the plain lines about calls, approvals or events in the log of a service. */
export function listLogged(
  service: Pick<Service, 'output'>,
  message: 'call' | 'approval',
): Record<string, unknown>[] {
  const lines = service.output().stderr.split('\n');
  return lines.flatMap((line) => {
    const [, members] = new RegExp(` \\[Audit\\] ${message}( .*)$`).exec(line) ?? [];
    if (members === undefined) return [];
    const read = (text: string): unknown => {
      try {
        return JSON.parse(text);
      } catch {
        return text;
      }
    };
    return [
      Object.fromEntries(
        [...members.matchAll(LOGGED_MEMBER)].map(([, name, text = '']) => [name, read(text)]),
      ),
    ];
  });
}
