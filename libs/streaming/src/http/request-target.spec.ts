import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shortenTarget } from './http-exchange.js';

function readTarget(url: string, host: string | undefined): string | undefined {
  const request = { url, headers: { host } } as unknown as IncomingMessage;
  shortenTarget(request);
  return request.url;
}

describe('a target that is a whole address', () => {
  it.each([
    ['http://one.example/mcp', 'one.example', '/mcp'],
    ['HTTPS://One.Example:8080/mcp?a=b', 'one.example:8080', '/mcp?a=b'],
    ['http://one.example', 'one.example', '/'],
    ['http://one.example?a', 'one.example', '/?a'],
    ['http://[::1]:1//mcp', '[::1]:1', '//mcp'],
  ])('%s at %s is %s', (url, host, target) => {
    expect(readTarget(url, host)).toBe(target);
  });

  it.each([
    ['http://one.example/mcp', 'two.example'],
    ['http://one.example/mcp', undefined],
    ['http://user@one.example/mcp', 'one.example'],
    ['ftp://one.example/mcp', 'one.example'],
    ['/http://one.example/mcp', 'one.example'],
    ['one.example:443', 'one.example:443'],
    ['*', 'one.example'],
  ])('%s at %s stays as it is', (url, host) => {
    expect(readTarget(url, host)).toBe(url);
  });

  it('never names another host than the header that is checked', () => {
    fc.assert(
      fc.property(fc.webUrl(), fc.domain(), (url, host) => {
        const { host: named } = new URL(url);
        expect(readTarget(url, host) === url).toBe(named !== host);
      }),
    );
  });
});
