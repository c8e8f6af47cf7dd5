import { readJson } from '#core';
import { ConfigError, type Environment, loadConfig } from '#config';
import { type OutputOptions, UsageError, withConfig } from './command-options.js';

/** How a command reaches a service that runs. */
export interface ServiceOptions extends OutputOptions {
  readonly url?: string;
}

/** Milliseconds for one answer. */
const ANSWER_TIMEOUT = 10_000;

/** An answer that is no success: the service says why. */
class ServiceRefused extends Error {
  override readonly name = 'ServiceRefused';
}

export interface ServiceAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Calls the HTTP routes of a running service with the API key of `PARLEY_API_KEY`. */
export class ServiceClient {
  private readonly origin: URL;
  private readonly key: string | undefined;

  /** @throws UsageError for an address that is none, and for a key that is none. It repeats neither. */
  constructor({ url, config }: ServiceOptions) {
    this.origin = readAddress(url ?? process.env['PARLEY_URL'] ?? configuredAddress(withConfig(config)));
    this.key = readKey(process.env['PARLEY_API_KEY']);
  }

  get address(): string {
    return this.origin.href;
  }

  get hasKey(): boolean {
    return this.key !== undefined;
  }

  /** @throws ServiceRefused when nothing answers, or no JSON */
  async ask(path: string, body?: object): Promise<ServiceAnswer> {
    const { status, text } = await this.send(path, body).catch((error: unknown) => {
      throw new ServiceRefused(
        `nothing answers at ${this.origin.origin}: ${describeCause(error)}; --url or PARLEY_URL names another address`,
      );
    });
    const reading = readJson(text);
    if (!reading.ok || reading.value === null || typeof reading.value !== 'object')
      throw new ServiceRefused(`${this.origin.origin} is no Parley service: it answers ${status}`);
    const answered = reading.value as ServiceAnswer['body'];
    // As every path below that of MCP answers.
    if (status === 404 && typeof answered['error'] === 'object')
      throw new ServiceRefused(
        `${this.origin.href} has no such route: --url or PARLEY_URL names the service, such as ${this.origin.origin}, not its MCP; within an application the console or the health routes may be off`,
      );
    return { status, body: answered };
  }

  private async send(path: string, body: object | undefined) {
    const response = await fetch(new URL(`${this.origin.pathname.replace(/\/$/, '')}${path}`, this.origin), {
      method: body ? 'POST' : 'GET',
      headers: {
        ...(this.key !== undefined && { 'X-MCP-API-Key': this.key }),
        // The console takes changes only with its header, which no page of another site can send.
        ...(body && { 'Content-Type': 'application/json', 'X-Parley-Console': '1' }),
      },
      ...(body && { body: JSON.stringify(body) }),
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_TIMEOUT),
    });
    return { status: response.status, text: await response.text() };
  }

  /** @throws ServiceRefused also for every status but 200 */
  async call(path: string, body?: object): Promise<ServiceAnswer['body']> {
    if (!this.hasKey) throw new UsageError('PARLEY_API_KEY must hold the API key of an approver or operator');
    const answer = await this.ask(path, body);
    if (answer.status === 200) return answer.body;
    const { error, message } = answer.body;
    const said = describe(message ?? error);
    if (answer.status === 503)
      throw new ServiceRefused(`not possible now (503): ${said}; parley status says what is down`);
    throw new ServiceRefused(`refused (${answer.status}): ${said}`);
  }
}

function describe(said: unknown): string {
  return typeof said === 'string' ? said : JSON.stringify(said ?? 'no reason');
}

/** The error codes of the network say more than "fetch failed". */
function describeCause(error: unknown): string {
  const { cause, message } = error as { cause?: NodeJS.ErrnoException; message: string };
  return cause?.code ?? cause?.message ?? message;
}

/** A service that refused a file still runs with the one before. @throws ConfigError, which says how it is reached */
function configuredAddress(env: Environment): string {
  const { host, port } = readServer(env);
  const open = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${open.includes(':') ? `[${open}]` : open}:${port}`;
}

function readServer(env: Environment): { readonly host: string; readonly port: number } {
  try {
    return loadConfig(env, process.cwd()).config.server;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const message = 'its address is not known: a service that runs is reached with --url or PARLEY_URL';
    throw new ConfigError(error.source, [...error.issues, { path: '--url', message }]);
  }
}

function readAddress(text: string): URL {
  const address = URL.canParse(text) ? new URL(text) : null;
  if (!address || !/^https?:$/.test(address.protocol))
    throw new UsageError('--url: it is no address such as https://parley.example.com');
  if (address.username !== '' || address.password !== '')
    throw new UsageError('--url: leave user and password out of the address; PARLEY_API_KEY holds the key');
  return address;
}

/** Errors of requests quote headers: a key that no header can hold must not reach one. */
function readKey(given: string | undefined): string | undefined {
  const key = given?.trim() ?? '';
  if (/[^\x20-\x7e]/.test(key)) throw new UsageError('PARLEY_API_KEY has characters that no key has');
  return key === '' ? undefined : key;
}
