import { describe, expect, it } from 'vitest';
import type { McpEdge } from '#streaming';
import { mcpAt } from './routes-application.js';

describe('the path of MCP', () => {
  it('claims its path and what lies below, and nothing that merely begins alike', () => {
    const { claims } = mcpAt('/mcp', {} as McpEdge);
    for (const url of ['/mcp', '/mcp/', '/mcp?a=/b', '/mcp/x']) expect(claims(url)).toBe(true);
    for (const url of ['/', '/mcpx', '/MCP', '/health', '/health/x', '']) expect(claims(url)).toBe(false);
  });
});
