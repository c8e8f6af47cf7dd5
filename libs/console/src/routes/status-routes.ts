import type { Route } from '../route.js';
import type { ServiceStatus } from '../service-status.js';

/** How the replica that answers is. */
export function statusRoutes(status: ServiceStatus): readonly Route[] {
  return [
    {
      verb: 'GET',
      path: '/console/api/status',
      answer: async () => ({ body: await status.read() }),
    },
  ];
}
