import type { REPLServer } from 'node:repl';

/** Lets a prompt wait for promises, so that what they come to is shown, and is `_`, without `await`. */
export function awaiting(server: REPLServer): void {
  const evaluate = server.eval;
  const evaluateAndWait: REPLServer['eval'] = function (this: REPLServer, code, context, file, done) {
    evaluate.call(this, code, context, file, (error, value: unknown) => {
      if (error || !isThenable(value)) return done(error, value);
      // After a microtask, so that an error of `done` is not taken for one of the promise.
      value.then(
        (settled) => setImmediate(() => done(null, settled)),
        (fault: unknown) => setImmediate(() => done(asError(fault), undefined)),
      );
    });
  };
  Object.defineProperty(server, 'eval', { value: evaluateAndWait });
}

/** Also those of the context of the prompt, whose classes are others. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

const asError = (fault: unknown) => (fault instanceof Error ? fault : new Error(String(fault)));
