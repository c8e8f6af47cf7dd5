import { boundedJson } from './bounded-answer.js';
import type { ParseConnectionOptions } from './parse-connection.js';

/** What an operator should know of the Parse Server that is configured. */
export interface ParseServerFacts {
  /** What it says of itself; null: it cannot be reached. */
  readonly health: string | null;
  /** Whether it knows the application id, and the REST API key if one is given. */
  readonly acceptsApplication: boolean;
  /** Whether it takes the master key from this machine; null: none is given. */
  readonly acceptsMasterKey: boolean | null;
  /** Told to the master key alone. */
  readonly version: string | null;
}

type Server = Pick<ParseConnectionOptions, 'serverUrl' | 'appId' | 'masterKey' | 'restApiKey'>;

/** Bytes of an answer about the server. */
const LONGEST = 262_144;

/** Asks the server about itself, in three requests that read no row. Redirects are not followed. Never rejects. */
export async function inspectParseServer(server: Server, timeoutMs: number): Promise<ParseServerFacts> {
  const ask = (path: string, headers: Record<string, string>) => asked(server, path, headers, timeoutMs);
  const health = await ask('/health', {});
  const unknown = { health: null, acceptsApplication: false, acceptsMasterKey: null, version: null };
  if (health.status === null) return unknown;
  const application = await ask('/config', restHeaders(server));
  const { masterKey } = server;
  const info = masterKey === null ? null : await ask('/serverInfo', masterHeaders(server, masterKey));
  const version = info?.body['parseServerVersion'];
  return {
    health: typeof health.body['status'] === 'string' ? health.body['status'] : `status ${health.status}`,
    acceptsApplication: application.status === 200,
    acceptsMasterKey: info === null ? null : info.status === 200,
    version: typeof version === 'string' ? version : null,
  };
}

const restHeaders = ({ appId, restApiKey }: Server): Record<string, string> => ({
  'X-Parse-Application-Id': appId,
  ...(restApiKey ? { 'X-Parse-REST-API-Key': restApiKey } : {}),
});

const masterHeaders = ({ appId }: Server, masterKey: string): Record<string, string> => ({
  'X-Parse-Application-Id': appId,
  'X-Parse-Master-Key': masterKey,
});

interface Told {
  /** Null: no answer. */
  readonly status: number | null;
  readonly body: Readonly<Record<string, unknown>>;
}

async function asked(
  { serverUrl }: Server,
  path: string,
  headers: Record<string, string>,
  timeoutMs: number,
): Promise<Told> {
  try {
    const response = await fetch(serverUrl.replace(/\/+$/, '') + path, {
      headers,
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const body = await boundedJson(response, LONGEST).catch(() => null);
    const isObject = body !== null && typeof body === 'object' && !Array.isArray(body);
    return { status: response.status, body: isObject ? (body as Record<string, unknown>) : {} };
  } catch {
    return { status: null, body: {} };
  }
}
