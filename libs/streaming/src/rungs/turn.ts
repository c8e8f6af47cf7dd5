import { CLOSING, connectionBusy, ROUTE_BUSY } from '../http/refusals.js';
import type { Turn } from '../connection-turns.js';
import type { Reply } from '../reply.js';
import type { Rung } from './rung.js';

/** Begins when the answers to earlier requests of the connection have left; cancellations and replies never wait. */
function turnOf(busy: (id: unknown) => Reply): Rung {
  return {
    name: 'turn',
    check: ({ request, response, message }, edge) => {
      const verdictOf = (turn: Turn) => (turn === 'now' ? null : turn === 'busy' ? busy(message.id) : 'gone');
      const turn = edge.unread.turns.of(request, response);
      if (!(turn instanceof Promise)) return verdictOf(turn);
      // What waited while the service began to close is not begun any more.
      return turn.then((settled) => (settled === 'now' && !edge.accepting ? CLOSING : verdictOf(settled)));
    },
  };
}

export const turn = turnOf(connectionBusy);
export const fileTurn = turnOf(() => ROUTE_BUSY);
