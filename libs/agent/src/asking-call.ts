import type { AskingCall, ClientAsks } from './client-question.js';
import { Refused } from './refusal.js';
import { clientCannotAnswer } from './refusals.js';

/** Runs work while the time of the caller stands still. */
export type Suspended = <T>(work: () => Promise<T>) => Promise<T>;

/** The asking part of what a handler is given. Where nobody can be asked, every question is refused. */
export function askingCall(
  asks: ClientAsks | undefined,
  suspended: Suspended = (work) => work(),
): AskingCall {
  return {
    canAsk: (question) => asks?.canAnswer(question) ?? false,
    ask: (key, question) => {
      if (!asks) return Promise.reject(new Refused(clientCannotAnswer(question.kind)));
      return suspended(() => asks.ask(key, question));
    },
  };
}
