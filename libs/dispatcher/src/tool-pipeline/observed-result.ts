import { isObservable, type Observable } from 'rxjs';
import type { ProgressUpdate } from '#agent';
import type { ToolCall } from '#tools';

/**
 * What a tool returned, as one value. An Observable's emissions are its progress and its last one is the result: a text
 * emitted on the way is a progress message, a progress update is sent as it is, anything else counts as one step. Nobody
 * listens once the call is over: the source is unsubscribed.
 */
export function resultOf(returned: unknown, call: ToolCall): unknown {
  return isObservable(returned) ? lastOf(returned, call) : returned;
}

function lastOf(source: Observable<unknown>, { progress, signal }: ToolCall): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let steps = 0;
    let held: { readonly value: unknown } | null = null;
    const running = source.subscribe({
      next: (value) => {
        if (held) progress(stepOf(held.value, (steps += 1)));
        held = { value };
      },
      error: (error: unknown) => reject(error instanceof Error ? error : new Error(String(error))),
      complete: () => resolve(held?.value ?? null),
    });
    const stop = () => {
      running.unsubscribe();
      reject(new Error('the call is over'));
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    running.add(() => signal.removeEventListener('abort', stop));
  });
}

function stepOf(value: unknown, step: number): ProgressUpdate {
  if (typeof value === 'string') return { progress: step, message: value };
  const { progress } = (value ?? {}) as { progress?: unknown };
  return typeof progress === 'number' ? (value as ProgressUpdate) : { progress: step };
}
