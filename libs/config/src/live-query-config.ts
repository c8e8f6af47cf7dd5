import { LiveQuerySource } from '#data-parse';
import type { ConfigFault } from './config-faults.js';

export interface LiveQueryConfig {
  /** `wss://`, or `ws://` on this machine. Null: changes are taken from the database. */
  readonly url: string | null;
  readonly appId: string | null;
  /** For servers that ask clients for one. */
  readonly restApiKey: string | null;
  /** For agents that act with the master key. Null: theirs are taken from the database. */
  readonly masterKey: string | null;
}

/** The part of `parse` that LiveQuery needs. */
export function liveQueryConfig(config: unknown): LiveQueryConfig {
  const { parse } = (config ?? {}) as { parse?: Record<string, string | null | undefined> | null };
  return {
    url: parse?.['liveQueryUrl'] ?? null,
    appId: parse?.['appId'] ?? null,
    restApiKey: parse?.['restApiKey'] ?? null,
    masterKey: parse?.['masterKey'] ?? null,
  };
}

/** What a pattern cannot say of `parse.liveQueryUrl`. */
export function liveQueryFaults(config: unknown): ConfigFault[] {
  const { url, appId } = liveQueryConfig(config);
  if (typeof url !== 'string') return [];
  if (typeof appId !== 'string')
    return [{ path: 'parse.appId', message: 'is needed with parse.liveQueryUrl' }];
  const fault = LiveQuerySource.urlFault(url);
  return fault === null ? [] : [{ path: 'parse.liveQueryUrl', message: fault }];
}
