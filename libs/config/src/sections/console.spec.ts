import { describe, expect, it } from 'vitest';
import { consoleErrors } from './operators.js';
import { ServerConfig } from './server.js';

const base = {
  agents: { boss: {}, guest: {} },
  auth: [
    { apiKey: 'k', agent: 'boss' },
    { anonymous: true as const, agent: 'guest' },
  ],
  server: new ServerConfig(),
};
const errorsOf = (operators: readonly string[] | null, path = '/mcp') =>
  consoleErrors({ ...base, server: { ...new ServerConfig(), path }, console: { operators } }).map(
    (fault) => fault.path,
  );

describe('the operators of the console', () => {
  it('may be agents that show a credential', () => {
    expect(errorsOf(['boss'])).toEqual([]);
    expect(errorsOf(null, '/console')).toEqual([]);
  });

  it('may not be an agent that needs none', () => {
    expect(errorsOf(['boss', 'guest'])).toEqual(['console.operators']);
  });

  it('may not be an agent that there is not', () => {
    expect(errorsOf(['nobody', 'toString'])).toEqual(['console.operators', 'console.operators']);
  });

  it.each(['/console', '/console/mcp'])('are not served where MCP is: %s', (path) => {
    expect(errorsOf(['boss'], path)).toEqual(['server.path']);
  });
});
