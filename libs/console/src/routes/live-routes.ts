import type { LiveStreams } from '../live/live-streams.js';
import type { Route } from '../route.js';

/** Calls, refusals and decisions as they are recorded, on every replica. */
export function liveRoutes(streams: LiveStreams): readonly Route[] {
  return [
    {
      verb: 'GET',
      path: '/console/api/live',
      answer: async ({ operator, response }) => {
        streams.serve(operator, response);
        return 'taken';
      },
    },
  ];
}
