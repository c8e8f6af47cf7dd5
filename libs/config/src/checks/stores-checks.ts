import { LiveQuerySource } from '#data-parse';
import type { ConfigIssue } from '../config-error.js';
import type { ParleyConfig } from '../config.js';
import { type Policy } from '#policy';
import type { AgentConfig } from '../sections/agents.js';
import { redisErrors } from '../sections/redis.js';
import { liveQueryConfig } from '../sections/stores.js';
import { isJsonObject, type JsonObject } from '#core';

/** Addresses that fit their pattern and are none. `redis.url` may hold a password, so no error repeats it. */
export function storeAddressErrors(config: JsonObject): ConfigIssue[] {
  const { redis } = config;
  return [...(isJsonObject(redis) ? redisErrors(redis) : []), ...liveQueryErrors(config)];
}

function liveQueryErrors(config: JsonObject): ConfigIssue[] {
  const { url, appId } = liveQueryConfig(config);
  if (typeof url !== 'string') return [];
  if (typeof appId !== 'string')
    return [{ path: 'parse.appId', message: 'is needed with parse.liveQueryUrl' }];
  const message = LiveQuerySource.urlFault(url);
  return message === null ? [] : [{ path: 'parse.liveQueryUrl', message }];
}

/** Checks beyond the form of `parse` and of the database beside it. */
export function parseServerErrors({
  parse,
  database,
  agents,
}: Pick<ParleyConfig, 'parse' | 'database' | 'agents'>): ConfigIssue[] {
  const errors: ConfigIssue[] = [];
  const add = (path: string, message: string, ...related: string[]) =>
    errors.push({ path, message, related });
  if (parse.serverUrl === null) {
    if (database.uri === null)
      add('database.uri', 'is needed where there is no parse.serverUrl', 'parse.serverUrl');
    return errors;
  }
  if (!isPlainAddress(parse.serverUrl))
    add('parse.serverUrl', 'must be an http or https URL without user, query and fragment');
  if (parse.appId === null) add('parse.appId', 'is needed with parse.serverUrl');
  if (database.uri === 'embedded')
    add('database.uri', "beside a Parse Server it must be that server's own database, or null");
  if (database.uri === null && database.seed !== null)
    add('database.seed', 'there is no database to be seeded: rows are those of Parse Server', 'database.uri');
  if (database.uri === null && parse.masterKey === null)
    add(
      'parse.masterKey',
      'is needed without database.uri: classes and permissions are read with it',
      'database.uri',
    );
  for (const [name, { identity }] of Object.entries(agents)) {
    if (database.uri === null && typeof identity === 'object' && 'impersonate' in identity)
      add(
        `agents.${name}.identity`,
        'needs database.uri: sessions of others are looked for there',
        'database.uri',
      );
  }
  return errors;
}

/**
 * What plain collections do not go together with. Their rows name no Parse user and no role, so an agent that reads with the
 * rights of one could read all of them or none.
 */
export function plainStorageErrors(
  { parse, database, agents, auth }: Pick<ParleyConfig, 'parse' | 'database' | 'agents' | 'auth'>,
  policy: Policy,
): ConfigIssue[] {
  const plain = [...policy.classes.values()].find((declared) => declared.plain !== null);
  if (database.storage === 'parse' && !plain) return [];
  const errors: ConfigIssue[] = [];
  const option =
    database.storage === 'plain' ? 'database.storage' : `policy.classes.${plain?.className}.storage`;
  if (parse.serverUrl !== null)
    errors.push({
      path: option,
      message:
        'cannot be plain beside parse.serverUrl, which serves Parse classes alone: serve plain collections by a configuration without it',
      related: ['parse.serverUrl'],
    });
  if (database.storage === 'parse') return errors;
  for (const [name, agent] of Object.entries(agents)) {
    const given = (['identity', 'clientMode'] as const).find((one) => isOfParse(agent, one));
    if (given === undefined) continue;
    errors.push({
      path: `agents.${name}.${given}`,
      message:
        'reads with the rights of a Parse user, role or session, which plain collections do not have: leave it out, and limit rows by tenantId or by filters with { $agent: user }',
      related: ['database.storage'],
    });
  }
  for (const [index, rule] of auth.entries()) {
    if ('parseSession' in rule)
      errors.push({
        path: `auth.${index}.parseSession`,
        message:
          'accepts sessions of Parse, which a plain database does not have: write apiKey, oauth or clientCertificate',
        related: ['database.storage'],
      });
  }
  return errors;
}

/** Whether an option gives the agent another identity than the master key. */
function isOfParse(agent: AgentConfig, option: keyof AgentConfig): boolean {
  const value = agent[option];
  return value !== undefined && value !== null && value !== false && value !== '' && value !== 'master';
}

function isPlainAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && [username, password, search, hash].every((part) => part === '');
}

/**
 * Without a master key every agent is in client mode.
 * @param errors receives an error for every agent that sets `clientMode: false`
 */
export function inClientMode(
  agents: Readonly<Record<string, AgentConfig>>,
  errors: ConfigIssue[],
): Record<string, AgentConfig> {
  return Object.fromEntries(
    Object.entries(agents).map(([name, agent]) => {
      if (agent.clientMode === false)
        errors.push({
          path: `agents.${name}.clientMode`,
          message: 'cannot be false without parse.masterKey',
          related: ['parse.masterKey'],
        });
      return [name, { ...agent, clientMode: true }];
    }),
  );
}
