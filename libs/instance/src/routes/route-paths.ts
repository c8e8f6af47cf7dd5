/** The routes beside MCP by purpose, each with all paths below it. */
export const ROUTE_PATHS = {
  tools: '/tools',
  approvals: '/approvals',
  health: '/health',
  ready: '/ready',
  exports: '/exports',
  protectedResource: '/.well-known/oauth-protected-resource',
  authorizationServer: '/.well-known/oauth-authorization-server',
} as const;

/** The operator console among the routes of an instance, where it is served. */
export const CONSOLE_PATH = '/console';

/** The path at which the console of an application is mounted, by that of MCP. That of the root adds nothing. */
export const consoleBase = (mcp: string): string => mcp.replace(/\/$/, '');
