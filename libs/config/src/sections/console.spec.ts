import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../schema/class-schema.js';
import { consoleErrors } from './operators.js';
import { ServerSection } from './server.js';

const base = {
  agents: { boss: {}, guest: {} },
  auth: [
    { apiKey: 'k', agent: 'boss' },
    { anonymous: true as const, agent: 'guest' },
  ],
  server: defaultsOf(ServerSection),
};
const errorsOf = (operators: readonly string[] | null, path = '/mcp') =>
  consoleErrors({ ...base, server: { ...defaultsOf(ServerSection), path }, console: { operators } }).map(
    (error) => error.path,
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
