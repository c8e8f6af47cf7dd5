import { randomUUID } from 'node:crypto';
import { readCallArguments } from './call-arguments.js';
import type { RequestedCall } from './language-model.js';
import { LanguageModelError } from './model-error.js';

interface Growing {
  id: string;
  name: string;
  text: string;
}

/** Calls that one turn may ask for: more is a model that has lost its way. */
const MAX_CALLS = 64;
const MAX_NAME = 256;

/** Puts the calls of one turn together from the pieces in which they are streamed. */
export class CallCollector {
  private readonly growing = new Map<string | number, Growing>();

  get size(): number {
    return this.growing.size;
  }

  /** @throws LanguageModelError when there are too many */
  at(place: string | number): Growing {
    let call = this.growing.get(place);
    if (!call) {
      if (this.growing.size >= MAX_CALLS)
        throw new LanguageModelError('malformed', `the model asked for more than ${MAX_CALLS} tools at once`);
      call = { id: '', name: '', text: '' };
      this.growing.set(place, call);
    }
    return call;
  }

  /** Each with an id of its own, so that every result belongs to one call. */
  finished(): RequestedCall[] {
    const ids = new Set<string>();
    return [...this.growing.values()].map(({ id, name, text }) => {
      const own = id === '' || id.length > MAX_NAME || ids.has(id) ? `call_${randomUUID()}` : id;
      ids.add(own);
      return { id: own, name: name.slice(0, MAX_NAME), args: readCallArguments(text) };
    });
  }
}
