import { NotServed, readSmallJson } from '#streaming';
import type { OperatorNotes } from '../operator-notes.js';
import { type RehearsalDesk, type RehearsalOrder, RehearsalsBusy } from '../rehearsal-desk.js';
import type { Route } from '../route.js';

/** What an agent may do: the gates of a call, passed for show. Nothing runs and nothing is sent to the database. */
export function explainRoutes(desk: RehearsalDesk, notes: OperatorNotes): readonly Route[] {
  return [
    {
      verb: 'GET',
      path: '/console/api/agents',
      answer: async () => ({ body: await desk.catalogue() }),
    },
    {
      verb: 'POST',
      path: '/console/api/explain',
      answer: async ({ operator, request }) => {
        const order = orderOf(await readSmallJson(request));
        const rehearsal = await desk.rehearse(order).catch((error: unknown) => {
          if (error instanceof RehearsalsBusy)
            throw new NotServed(503, 'too many questions wait already', { 'Retry-After': '2' });
          throw error;
        });
        if (!rehearsal) throw new NotServed(404, 'no such agent');
        notes.write(operator, 'console.explain', `${order.agent} ${order.tool}`);
        return { body: rehearsal };
      },
    },
  ];
}

/** @throws NotServed */
function orderOf({ agent, tool, args, user }: Readonly<Record<string, unknown>>): RehearsalOrder {
  if (typeof agent !== 'string' || agent === '') throw new NotServed(400, 'agent must be a name');
  if (typeof tool !== 'string' || tool === '') throw new NotServed(400, 'tool must be a name');
  if (args === null || typeof args !== 'object' || Array.isArray(args))
    throw new NotServed(400, 'args must be a JSON object');
  if (user !== undefined && typeof user !== 'string')
    throw new NotServed(400, 'user must be the id of a user');
  return {
    agent,
    tool,
    args: args as RehearsalOrder['args'],
    ...(user !== undefined && user !== '' && { user }),
  };
}
