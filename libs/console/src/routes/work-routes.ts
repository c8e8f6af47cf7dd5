import type { ExportOverview } from '#exports';
import type { TaskOverview } from '#jobs';
import { limitOf, type Route } from '../route.js';

export interface WorkParts {
  readonly tasks: TaskOverview;
  readonly exports: ExportOverview;
}

/** Long calls and promised exports of everybody, the latest first. */
export function workRoutes({ tasks, exports }: WorkParts): readonly Route[] {
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
