import { describe, expect, it } from 'vitest';
import { HostPolicy } from './host-policy.js';
import { OriginPolicy } from './origin-policy.js';

describe('OriginPolicy', () => {
  const listed = new OriginPolicy(['https://App.example.com', '.example.org'], false);

  it.each([
    undefined,
    '',
    ' ',
    'https://app.example.com',
    'HTTPS://APP.EXAMPLE.COM',
    'https://example.org',
    'https://a.b.example.org',
    'https://a.example.org:8443',
    'http://a.example.org',
  ])('permits %j', (origin) => {
    expect(listed.permits(origin)).toBe(true);
  });

  it.each([
    'http://app.example.com',
    'https://app.example.com:8443',
    'https://app.example.com.evil.example',
    'https://attacker-example.org',
    'https://example.org.evil.example',
    'https://evil.example/.example.org',
    'https://evil.example#.example.org',
    'null',
    'nonsense',
    'ftp://a.example.org',
  ])('refuses %j', (origin) => {
    expect(listed.permits(origin)).toBe(false);
  });

  it('never permits null, even where it is listed', () => {
    expect(new OriginPolicy(['null'], false).permits('null')).toBe(false);
  });

  it('permits any page where nothing is configured', () => {
    expect(new OriginPolicy([], false).permits('https://anything.example')).toBe(true);
  });

  it.each(['http://localhost.evil.example', 'http://127.0.0.1.nip.example', 'null', 'http://0.0.0.0'])(
    'is not fooled by %s on loopback',
    (origin) => {
      expect(new OriginPolicy([], true).permits(origin)).toBe(false);
    },
  );
});

describe('HostPolicy', () => {
  it('compares a port only where one is listed', () => {
    const hosts = new HostPolicy(['mcp.example.com', 'other.example.com:8443'], true);
    expect(hosts.permits('MCP.example.com:1')).toBe(true);
    expect(hosts.permits('other.example.com:8443')).toBe(true);
    expect(hosts.permits('other.example.com')).toBe(false);
  });

  it('permits loopback names besides the listed ones', () => {
    const hosts = new HostPolicy(['mcp.example.com'], false);
    expect(hosts.permits('localhost:3001')).toBe(true);
    expect(hosts.permits('evil.example')).toBe(false);
  });

  it.each([undefined, '', 'localhost.evil.example', 'evil.example', '[::1', '127.0.0.1.evil.example'])(
    'refuses %j on loopback',
    (host) => {
      expect(new HostPolicy([], true).permits(host)).toBe(false);
    },
  );

  it('permits any host away from loopback where none is listed', () => {
    expect(new HostPolicy([], false).permits('anything.example')).toBe(true);
  });
});
