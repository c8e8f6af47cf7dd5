import { describe, expect, it } from 'vitest';
import { consoleFaults } from './console-faults.js';
import { DEFAULT_SERVER } from './server-config.js';

const base = {
  agents: { boss: {}, guest: {} },
  auth: [
    { apiKey: 'k', agent: 'boss' },
    { anonymous: true as const, agent: 'guest' },
  ],
  server: DEFAULT_SERVER,
};
const faultsOf = (operators: readonly string[] | null, path = '/mcp') =>
  consoleFaults({ ...base, server: { ...DEFAULT_SERVER, path }, console: { operators } }).map(
    (fault) => fault.path,
  );

describe('the operators of the console', () => {
  it('may be agents that show a credential', () => {
    expect(faultsOf(['boss'])).toEqual([]);
    expect(faultsOf(null, '/console')).toEqual([]);
  });

  it('may not be an agent that needs none', () => {
    expect(faultsOf(['boss', 'guest'])).toEqual(['console.operators']);
  });

  it('may not be an agent that there is not', () => {
    expect(faultsOf(['nobody', 'toString'])).toEqual(['console.operators', 'console.operators']);
  });

  it.each(['/console', '/console/mcp'])('are not served where MCP is: %s', (path) => {
    expect(faultsOf(['boss'], path)).toEqual(['server.path']);
  });
});
