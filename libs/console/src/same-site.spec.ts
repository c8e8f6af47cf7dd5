import { describe, expect, it } from 'vitest';
import { crossSiteRefusal, isLoopbackName } from './operator-sessions.js';

const HOST = { host: 'parley.example:8443' };
const OWN = 'https://parley.example:8443';
const HEADER = { 'x-parley-console': '1' };

describe('a request to the console', () => {
  it.each([
    ['of a program that reads', 'GET', {}],
    ['of a program that changes something', 'POST', HEADER],
    ['of the page that reads', 'GET', { 'sec-fetch-site': 'same-origin' }],
    [
      'of the page that changes something',
      'DELETE',
      { ...HEADER, 'sec-fetch-site': 'same-origin', origin: OWN },
    ],
    ['of the page behind a proxy that ends TLS', 'POST', { ...HEADER, origin: 'http://parley.example:8443' }],
  ])('is let in: %s', (_, verb, headers) => {
    expect(crossSiteRefusal({ ...HOST, ...headers }, verb)).toBeNull();
  });

  it.each([
    ['of another site that reads', 'GET', { 'sec-fetch-site': 'cross-site' }],
    ['of a sibling of the same site', 'GET', { 'sec-fetch-site': 'same-site' }],
    ['that somebody typed', 'GET', { 'sec-fetch-site': 'none' }],
    ['of another origin', 'POST', { ...HEADER, origin: 'https://evil.example' }],
    ['of another port', 'POST', { ...HEADER, origin: 'https://parley.example' }],
    [
      'of a name that only begins alike',
      'POST',
      { ...HEADER, origin: 'https://parley.example:8443.evil.example' },
    ],
    ['of a sandboxed page', 'POST', { ...HEADER, origin: 'null' }],
    ['of the page without the header', 'POST', { 'sec-fetch-site': 'same-origin', origin: OWN }],
    ['with another value of it', 'DELETE', { 'x-parley-console': '0' }],
    ['of a verb nobody knows, without it', 'PURGE', {}],
  ])('is refused: %s', (_, verb, headers) => {
    expect(crossSiteRefusal({ ...HOST, ...headers }, verb)).not.toBeNull();
  });

  it('is refused when it names no host and an origin', () => {
    expect(crossSiteRefusal({ origin: 'https://x.example' }, 'GET')).not.toBeNull();
  });
});

describe('a name', () => {
  it.each(['localhost', 'localhost:3001', '127.0.0.1:1', '[::1]:3001'])(
    'stays on this machine: %s',
    (host) => {
      expect(isLoopbackName(host)).toBe(true);
    },
  );

  it.each(['localhost.evil.example', '127.0.0.1.evil.example', 'parley.example', '', undefined, 'a b'])(
    'may leave it: %s',
    (host) => {
      expect(isLoopbackName(host)).toBe(false);
    },
  );
});
