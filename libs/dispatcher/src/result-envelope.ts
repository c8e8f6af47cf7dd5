import { SERVER_INFO_KEY } from './envelope-keys.js';
import { isJsonObject, type JsonObject } from './json-object.js';
import type { Era } from './protocol-versions.js';

export interface ServerInfo {
  readonly name: string;
  readonly version: string;
}

/** How long a client may keep a result (milliseconds), and whether one agent's answer may serve another. */
export interface CacheHint {
  readonly ttlMs: number;
  readonly cacheScope: 'public' | 'private';
}

/** Adds what the stateless era requires of every result; legacy results stay as they are. */
export class ResultEnvelope {
  constructor(private readonly serverInfo: ServerInfo) {}

  complete(era: Era, result: JsonObject, hint: CacheHint | undefined): JsonObject {
    if (era === 'legacy') return result;
    const meta = isJsonObject(result._meta) ? result._meta : {};
    return {
      resultType: 'complete',
      ...result,
      // What is asked of a client is never kept as the answer.
      ...(result['resultType'] === undefined && hint),
      _meta: { ...meta, [SERVER_INFO_KEY]: this.serverInfo },
    };
  }
}
