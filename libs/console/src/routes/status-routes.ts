import type { ExportOverview } from '#exports';
import type { TaskOverview } from '#tasks';
import { limitOf, type Route } from '../route.js';
import type { ServiceStatus } from '../service-status.js';

/** The status of the replica that answers. */
export function statusRoutes(status: ServiceStatus): readonly Route[] {
  return [
    {
      verb: 'GET',
      path: '/console/api/status',
      answer: async () => ({ body: await status.read() }),
    },
  ];
}

interface StatusRoutesDependencies {
  readonly tasks: TaskOverview;
  readonly exports: ExportOverview;
}

/** Tasks and exports of all principals, the latest first. */
export function workRoutes({ tasks, exports }: StatusRoutesDependencies): readonly Route[] {
  return [
    {
      verb: 'GET',
      path: '/console/api/tasks',
      answer: async ({ query }) => ({ body: { tasks: await tasks.latest(limitOf(query)) } }),
    },
    {
      verb: 'GET',
      path: '/console/api/exports',
      answer: async ({ query }) => ({ body: { exports: await exports.latest(limitOf(query)) } }),
    },
  ];
}
