import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { Mountings } from './mountings.js';

const server = createServer((_, response) => response.end('application'));
const answering = (text: string) => (_: IncomingMessage, response: ServerResponse) => void response.end(text);
afterEach(() => new Promise((resolve) => server.close(resolve)));

describe('requests', () => {
  it('go to the longest path that fits, by whole segments and letter by letter; all others to the application', async () => {
    const mountings = Mountings.of(server);
    mountings.mount('/mcp', answering('mcp'), { deep: true });
    mountings.mount('/mcp/tools', answering('tools'), { deep: true });
    mountings.mount('/document', answering('document'), { deep: false });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const to = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
    const expected: Record<string, string> = {
      '/mcp': 'mcp',
      '/mcp?tools=/x': 'mcp',
      '/mcp/': 'mcp',
      '/mcp/other/x': 'mcp',
      '/mcp/tools': 'tools',
      '/mcp/tools/x?y': 'tools',
      '/mcp/toolsx': 'mcp',
      '/document': 'document',
      '/document/': 'document',
      '/document/more': 'application',
      '/mcpx': 'application',
      '/MCP': 'application',
      '//mcp': 'application',
      '/%6dcp': 'application',
      '/x/mcp': 'application',
      '/': 'application',
    };
    for (const [path, answer] of Object.entries(expected))
      expect([path, await to(path)]).toEqual([path, answer]);
    expect(() => mountings.mount('/mcp/tools', answering(''), { deep: true })).toThrow('path /mcp/tools');
    expect(Mountings.of(server)).toBe(mountings);
  });
});

describe('the stores of instances', () => {
  const records = new Map([['mongodb uri a.records', 'audit.sinks: a.records']]);
  const others = new Map([['mongodb uri b.records', 'audit.sinks: b.records']]);

  it('may be one where no console shows it', () => {
    const mountings = new Mountings();
    mountings.store('default', records, false);
    expect(() => mountings.store('partners', records, false)).not.toThrow();
    expect(() => mountings.store('billing', others, true)).not.toThrow();
  });

  it.each([
    [true, false],
    [false, true],
    [true, true],
  ])('are never one where a console shows it: %s, %s', (first, second) => {
    const mountings = new Mountings();
    mountings.store('default', records, first);
    expect(() => mountings.store('partners', records, second)).toThrow(
      'both default and partners keep in one place (audit.sinks: a.records)',
    );
  });
});
