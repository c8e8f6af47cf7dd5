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
