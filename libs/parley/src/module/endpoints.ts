import type { ConfigFault } from '#config';

/** What an instance serves beside MCP. What is switched off is answered with 404. */
export interface ParleyEndpoints {
  /** `/tools` below the path of MCP: the caller's tools as a list. Default true. */
  readonly tools?: boolean;
  /** `/approvals` below the path of MCP: for those who decide. Default true. */
  readonly approvals?: boolean;
  /** `/exports/<id>` below the path of MCP. Default true; without it exports are read as resources alone. */
  readonly exports?: boolean;
  /** The documents of OAuth under `/.well-known` of the host, where tokens are taken. Default true. */
  readonly documents?: boolean;
  /** `/health` and `/ready` below the path of MCP, for everybody. Default false. */
  readonly health?: boolean;
}

export const DEFAULT_ENDPOINTS: Required<ParleyEndpoints> = Object.freeze({
  tools: true,
  approvals: true,
  exports: true,
  documents: true,
  health: false,
});

/** Code without types may have given anything. */
export function endpointFaults(given: unknown): ConfigFault[] {
  if (given === undefined) return [];
  if (given === null || typeof given !== 'object')
    return [{ path: 'endpoints', message: 'expected an object' }];
  return Object.entries(given).flatMap(([name, value]) => {
    const path = `endpoints.${name}`;
    if (!Object.hasOwn(DEFAULT_ENDPOINTS, name)) return [{ path, message: 'unknown option' }];
    return value === undefined || typeof value === 'boolean'
      ? []
      : [{ path, message: 'expected true or false' }];
  });
}
