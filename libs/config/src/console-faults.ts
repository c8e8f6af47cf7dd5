import { noAgent } from './errors/no-agent.js';
import type { ParleyConfig } from './config.js';
import type { ConfigFault } from './config-faults.js';

/** What would make the console a page of nobody, or of everybody. */
export function consoleFaults({
  console: { operators },
  agents,
  auth,
  server,
}: Pick<ParleyConfig, 'console' | 'agents' | 'auth' | 'server'>): ConfigFault[] {
  if (operators === null) return [];
  const path = 'console.operators';
  const faults = operators.flatMap((name): ConfigFault[] => {
    if (!Object.hasOwn(agents, name)) return [{ path, ...noAgent(name, agents) }];
    const anonymous = auth.some((rule) => 'anonymous' in rule && rule.agent === name);
    return anonymous
      ? [{ path, message: `'${name}' is reached without a credential: an operator signs in` }]
      : [];
  });
  if (/^\/console(\/|$)/.test(server.path))
    faults.push({ path: 'server.path', message: 'is where the console is served' });
  return faults;
}
