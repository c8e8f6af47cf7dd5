import { LanguageModelError } from './model-error.js';

export interface ServerSentEvent {
  /** Empty: none was named. */
  readonly event: string;
  readonly data: string;
}

/** Characters of one event. */
const MAX_EVENT = 1_048_576;

/** Takes an event stream apart, however its bytes were cut. */
export class EventReader {
  private line = '';
  private event = '';
  private data: string[] = [];
  private held = 0;
  private endedInReturn = false;

  /** @throws LanguageModelError when one event is larger than what is read */
  take(text: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    // The second half of a line end that was cut in two.
    const rest = this.endedInReturn && text.startsWith('\n') ? text.slice(1) : text;
    if (text !== '') this.endedInReturn = text.endsWith('\r');
    const lines = rest.split(/\r\n|\r|\n/);
    const last = lines.pop() ?? '';
    for (const line of lines) {
      const event = this.endLine(this.line + line);
      this.line = '';
      if (event) events.push(event);
    }
    this.line += last;
    if (this.line.length + this.held > MAX_EVENT)
      throw new LanguageModelError(
        'too-large',
        `the model sent an event of more than ${MAX_EVENT} characters`,
      );
    return events;
  }

  private endLine(line: string): ServerSentEvent | null {
    if (line === '') return this.dispatch();
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.event = value;
    if (field === 'data') {
      this.data.push(value);
      this.held += value.length + 1;
    }
    return null;
  }

  private dispatch(): ServerSentEvent | null {
    const { event, data } = this;
    this.event = '';
    this.data = [];
    this.held = 0;
    return data.length === 0 ? null : { event, data: data.join('\n') };
  }
}
