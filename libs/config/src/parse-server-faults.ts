import type { AgentConfig } from './agent-config.js';
import type { ParleyConfig } from './config.js';
import type { ConfigFault } from './config-faults.js';

/** What a schema cannot say of `parse` and of the database beside it. */
export function parseServerFaults({
  parse,
  database,
  agents,
}: Pick<ParleyConfig, 'parse' | 'database' | 'agents'>): ConfigFault[] {
  const faults: ConfigFault[] = [];
  const fault = (path: string, message: string, ...related: string[]) =>
    faults.push({ path, message, related });
  if (parse.serverUrl === null) {
    if (database.uri === null)
      fault('database.uri', 'is needed where there is no parse.serverUrl', 'parse.serverUrl');
    return faults;
  }
  if (!isPlainAddress(parse.serverUrl))
    fault('parse.serverUrl', 'must be an http or https URL without user, query and fragment');
  if (parse.appId === null) fault('parse.appId', 'is needed with parse.serverUrl');
  if (database.uri === 'embedded')
    fault('database.uri', "beside a Parse Server it must be that server's own database, or null");
  if (database.uri === null && database.seed !== null)
    fault(
      'database.seed',
      'there is no database to be seeded: rows are those of Parse Server',
      'database.uri',
    );
  if (database.uri === null && parse.masterKey === null)
    fault(
      'parse.masterKey',
      'is needed without database.uri: classes and permissions are read with it',
      'database.uri',
    );
  for (const [name, { identity }] of Object.entries(agents)) {
    if (database.uri === null && typeof identity === 'object' && 'impersonate' in identity)
      fault(
        `agents.${name}.identity`,
        'needs database.uri: sessions of others are looked for there',
        'database.uri',
      );
  }
  return faults;
}

function isPlainAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && [username, password, search, hash].every((part) => part === '');
}

/**
 * Without a master key no agent can be more than the session it carries.
 * @param faults agents that say they were are added here
 */
export function inClientMode(
  agents: Readonly<Record<string, AgentConfig>>,
  faults: ConfigFault[],
): Record<string, AgentConfig> {
  return Object.fromEntries(
    Object.entries(agents).map(([name, agent]) => {
      if (agent.clientMode === false)
        faults.push({
          path: `agents.${name}.clientMode`,
          message: 'cannot be false without parse.masterKey',
          related: ['parse.masterKey'],
        });
      return [name, { ...agent, clientMode: true }];
    }),
  );
}
