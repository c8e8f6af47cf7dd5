import { describe, expect, it } from 'vitest';
import { HostPolicy, OriginPolicy } from './admission.js';

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
    const hosts = new HostPolicy(['mcp.example.com', 'other.example.com:8443', '[2001:DB8::1]'], true);
    expect(hosts.judge('MCP.example.com:1')).toBe('permitted');
    expect(hosts.judge('other.example.com:8443')).toBe('permitted');
    expect(hosts.judge('other.example.com')).toBe('foreign');
    expect(hosts.judge('[2001:db8:0::1]:1')).toBe('permitted');
  });

  it('permits loopback names besides the listed ones', () => {
    const hosts = new HostPolicy(['mcp.example.com'], false);
    expect(hosts.judge('localhost:3001')).toBe('permitted');
    expect(hosts.judge('evil.example')).toBe('foreign');
  });

  it.each(['LOCALHOST', 'localhost:0', '127.0.0.1:65535', '[::1]', '[::1]:3001', '[0:0:0:0:0:0:0:1]:3001'])(
    'permits %j on loopback',
    (host) => expect(new HostPolicy([], true).judge(host)).toBe('permitted'),
  );

  it.each([
    undefined,
    'localhost.evil.example',
    'evil.example',
    '127.0.0.1.evil.example',
    'localhost.',
    '127.1',
    '2130706433',
    '[::2]',
    '[::ffff:127.0.0.1]',
    '0.0.0.0',
  ])('finds %j foreign on loopback', (host) => {
    expect(new HostPolicy([], true).judge(host)).toBe('foreign');
  });

  it.each([
    '',
    'localhost:evil',
    'localhost:',
    'localhost:65536',
    'localhost:3001:3001',
    'localhost:-1',
    'localhost:３００１',
    'localhost@evil.example',
    'user:3001@localhost',
    'localhost/evil',
    'localhost?',
    'localhost#evil',
    'localhost evil.example',
    'localhost,evil.example',
    'localhost\\evil',
    '[::1',
    '::1',
    '[::1]evil.example',
    '[::1]:evil',
    '[::1%25lo]',
    '[localhost]',
    '[127.0.0.1]',
    '%6cocalhost',
  ])('finds %j malformed, whichever hosts are permitted', (host) => {
    for (const policy of [
      new HostPolicy([], true),
      new HostPolicy([], false),
      new HostPolicy(['a.b'], false),
    ])
      expect(policy.judge(host)).toBe('malformed');
  });

  it('permits any host away from loopback where none is listed', () => {
    expect(new HostPolicy([], false).judge('anything.example')).toBe('permitted');
    expect(new HostPolicy([], false).judge(undefined)).toBe('permitted');
  });
});
