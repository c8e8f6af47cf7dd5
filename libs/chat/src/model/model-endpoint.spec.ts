import { describe, expect, it } from 'vitest';
import { ModelSettingsError } from './language-model.js';
import { ModelEndpoint } from './model-endpoint.js';

const open = (url: string, allowed: string[] | null = null) => new ModelEndpoint(url, { allowed });

describe('an endpoint that nobody listed', () => {
  it.each([
    'https://api.openai.com/v1',
    'http://localhost:1234/v1',
    'http://127.0.0.1:1/v1',
    'http://[::1]:8000',
  ])('may be public and encrypted, or on this machine: %s', (url) => {
    expect(open(url).url).toBe(url);
  });

  it.each([
    'http://api.openai.com/v1',
    'https://10.1.2.3/v1',
    'https://192.168.0.4/v1',
    'https://172.31.255.255/v1',
    'https://169.254.169.254/latest',
    'https://100.64.0.1/v1',
    'https://0x0a000001/v1',
    'https://167772161/v1',
    'https://[fd00::1]/v1',
    'https://[fe80::1]/v1',
    'https://[::ffff:10.0.0.1]/v1',
    'https://0.0.0.0/v1',
    'ftp://example.com/v1',
    'file:///etc/passwd',
    'https://user:pass@example.com/v1',
    'https://example.com/v1?key=1',
    'not a url',
  ])('may not be %s', (url) => {
    expect(() => open(url)).toThrow(ModelSettingsError);
  });

  it.each([['10.0.0.7'], ['127.0.0.1'], ['fd12::1'], ['8.8.8.8', '192.168.1.1']])(
    'is not asked when its name leads inside (%s)',
    async (...addresses) => {
      const endpoint = new ModelEndpoint('https://models.example/v1', {
        allowed: null,
        resolve: () => Promise.resolve(addresses),
      });
      const { signal } = new AbortController();
      await expect(endpoint.request('/models', { signal })).rejects.toThrow('private network');
    },
  );
});

describe('a list of endpoints', () => {
  const LIST = ['https://api.openai.com/v1', 'http://10.0.0.5:8000'];

  it.each(['https://api.openai.com/v1', 'https://API.openai.com/v1/x', 'http://10.0.0.5:8000/v1'])(
    'permits what it names, inside a network too: %s',
    (url) => {
      expect(open(url, LIST).url).toBe(url);
    },
  );

  it.each([
    'https://api.openai.com/v11',
    'https://api.openai.com.evil.example/v1',
    'https://api.openai.com:444/v1',
    'http://api.openai.com/v1',
    'http://localhost:1234/v1',
    'http://10.0.0.5:8001/v1',
  ])('permits nothing else: %s', (url) => {
    expect(() => open(url, LIST)).toThrow('not among llm.allowedEndpoints');
  });

  it('permits nothing when it is empty', () => {
    expect(() => open('https://api.openai.com/v1', [])).toThrow('not among');
  });
});
