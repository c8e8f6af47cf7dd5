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
