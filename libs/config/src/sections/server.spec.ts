import { describe, expect, it } from 'vitest';
import { ConfigError } from '../config-error.js';
import { readConfig } from '../load-config.js';

/** The paths of the errors of a configuration, and their words. */
function errorsOf(configuration: object): readonly string[] {
  try {
    readConfig({ policy: { unlistedClasses: 'refuse' }, ...configuration });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.issues.map(({ path, message }) => `${path}: ${message}`);
  }
}

describe('an anonymous rule', () => {
  const auth = [{ anonymous: true, agent: 'analyst' }];
  const agents = { analyst: {} };

  it.each([
    [{ publicUrl: 'https://parley.example/mcp' }, 'server.publicUrl'],
    [{ allowedHosts: ['localhost', 'parley.example:8080'] }, 'server.allowedHosts.1'],
    [{ allowedHosts: ['203.0.113.7'] }, 'server.allowedHosts.0'],
  ])('is refused beside a name that leads here from other machines: %j', (server, path) => {
    const errors = errorsOf({ agents, auth, server });
    expect(errors.map((text) => text.split(':')[0])).toEqual([path]);
    expect(errors[0]).toContain('set MCP_API_KEY or give auth rules without anonymous');
  });

  it.each([
    {},
    { publicUrl: 'http://127.0.0.1:3001/mcp', allowedHosts: ['localhost:3001', '[::1]', '127.0.0.1'] },
  ])('is accepted beside names of this machine: %j', (server) => {
    expect(errorsOf({ agents, auth, server })).toEqual([]);
  });

  it('is no matter where there is none', () => {
    const server = { publicUrl: 'https://parley.example/mcp', allowedHosts: ['parley.example'] };
    expect(errorsOf({ agents, auth: [{ apiKey: 'key-of-the-analyst', agent: 'analyst' }], server })).toEqual(
      [],
    );
  });
});

describe('what no request, no edge and no timer can have', () => {
  const of = (given: object) => errorsOf({ agents: { analyst: {} }, ...given });

  it.each([
    'a b',
    'x_y',
    'X:Y',
    ' X-A',
    'é',
    { x_y: 'b' },
    { 'X-A': ' b' },
    { 'X-A': '' },
    { 'X-A': 'a\nb' },
  ])('is refused as a header that every request needs: %j', (requireCustomHeader) => {
    expect(of({ server: { requireCustomHeader } }).join()).toMatch(/^server\.requireCustomHeader/);
  });

  it.each(['X-MCP-Client', 'x.a', { 'X-A': 'b c' }])('is no other header: %j', (requireCustomHeader) => {
    expect(of({ server: { requireCustomHeader } })).toEqual([]);
  });

  it.each(['/mcp/', '//', '/a//'])('is refused as a path, with a slash at its end: %s', (path) => {
    expect(of({ server: { path } }).join()).toMatch(/^server\.path: must be a path/);
  });

  it.each(['/', '/mcp', '/a-b/c_d'])('is no other path: %s', (path) => {
    expect(of({ server: { path } })).toEqual([]);
  });

  it.each([
    ['server', 'heartbeatInterval'],
    ['server', 'approvalTimeout'],
    ['server', 'drainTimeout'],
    ['tasks', 'heartbeat'],
    ['subscriptions', 'debounce'],
    ['reload', 'interval'],
    ['llm', 'timeout'],
  ])('is refused as a time that a timer waits, and would not: %s.%s', (section, option) => {
    expect(of({ [section]: { [option]: 2_147_484 } }).join()).toMatch(
      new RegExp(`^${section}\\.${option}: `),
    );
  });
});

describe('an allowed origin', () => {
  const of = (origin: string) => errorsOf({ agents: { analyst: {} }, server: { allowedOrigins: [origin] } });

  it.each([
    'https://app.example.com',
    'HTTPS://App.Example.com',
    'http://localhost:5173',
    'https://app.example.com:8443',
    'http://[::1]:5173',
    '.example.com',
    'chrome-extension://abcdefghijklmnop',
    'vscode-webview://0123abcd',
    'tauri://localhost',
  ])('may be what a browser sends: %s', (origin) => {
    expect(of(origin)).toEqual([]);
  });

  it.each([
    ['app.example.com', "with its scheme, as 'https://app.example.com'"],
    ['localhost:5173', "with its scheme, as 'https://localhost'"],
    ['*', 'list each one'],
    ['https://*.example.com', "as 'https://app.example.com'"],
    ['null', 'every sandboxed page'],
    ['https://app.example.com/', "as 'https://app.example.com': write that"],
    ['https://app.example.com/page', "as 'https://app.example.com': write that"],
    ['https://app.example.com:443', "as 'https://app.example.com': write that"],
    ['https://bücher.example', "as 'https://xn--bcher-kva.example': write that"],
    ['https://user@app.example.com', "as 'https://app.example.com': write that"],
    ['https://a.example, https://b.example', "as 'https://app.example.com'"],
    ['.example.com/x', "as '.example.com'"],
    ['.', "as '.example.com'"],
  ])('that none sends is an error that says what to write: %s', (origin, instead) => {
    const [error = '', ...others] = of(origin);
    expect(others).toEqual([]);
    expect(error).toMatch(/^server\.allowedOrigins\.0: /);
    expect(error).toContain(instead);
  });
});

describe('a path of the service', () => {
  const of = (server: object) => errorsOf({ agents: { analyst: {} }, server });

  it.each([
    { healthPath: '/livez' },
    { healthPath: '/' },
    { healthPath: '/health' },
    { healthPath: '/health/live' },
    { healthPath: '/mcp2' },
  ])('may be %j', (server) => {
    expect(of(server)).toEqual([]);
  });

  it.each([
    [{ healthPath: '/mcp' }, 'server.healthPath: is where /mcp is served'],
    [{ healthPath: '/mcp/health' }, 'server.healthPath: is where /mcp is served'],
    [{ path: '/ai', healthPath: '/ai/' }, 'server.healthPath: is where /ai is served'],
    [{ path: '/', healthPath: '/' }, 'server.healthPath: is where / is served'],
    [{ healthPath: '/tools' }, 'server.healthPath: is where /tools is served'],
    [{ healthPath: '/console/health' }, 'server.healthPath: is where /console is served'],
    [{ healthPath: '/approvals/x' }, 'server.healthPath: is where /approvals is served'],
    [{ path: '/health' }, 'server.path: is where /health of the service is served'],
  ])('is not one at which another route answers: %j', (server, error) => {
    expect(of(server)).toEqual([expect.stringContaining(error)]);
  });
});
