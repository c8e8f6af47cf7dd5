import { createInterface } from 'node:readline';
import { Recoverable, type REPLEval } from 'node:repl';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { type Context, runInContext } from 'node:vm';
import { terminalText } from '#audit';

/** Evaluates what is entered at a prompt, one after the other; what promises come to is shown, and is `_`, without `await`. */
export class AwaitedEvaluations {
  private last: Promise<void> = Promise.resolve();

  readonly evaluate: REPLEval = (code, context, _file, done) => {
    this.last = inTurn(this.last, code, context, done);
  };

  /** Settles when everything that was entered is evaluated. */
  async settled(): Promise<void> {
    await turn();
    await this.last;
    await turn();
  }

  /** Lines of a pipe, each handed on when the one before it is evaluated, as a person would enter them. */
  paced(input: Readable): Readable {
    return Readable.from(this.lines(input), { objectMode: false, highWaterMark: 1 });
  }

  private async *lines(input: Readable): AsyncGenerator<string> {
    for await (const line of createInterface({ input, crlfDelay: Infinity })) {
      yield `${line}\n`;
      await this.settled();
    }
  }
}

async function inTurn(
  before: Promise<void>,
  code: string,
  context: Context,
  done: (fault: Error | null, value: unknown) => void,
): Promise<void> {
  await before;
  let value: unknown;
  try {
    value = await evaluate(code, context);
  } catch (fault) {
    return done(isUnfinished(fault) ? new Recoverable(fault) : asError(fault), undefined);
  }
  done(null, value);
}

/** A variable that is awaited for is one of the prompt anyway. */
const DECLARATION = /^\s*(?:var|let|const)\s+/;

function evaluate(code: string, context: Context): unknown {
  const run = (text: string): unknown => runInContext(text, context, { filename: 'console' });
  // As at any prompt: what begins with a brace is an object, when it can be one.
  const forms = /^\s*\{/.test(code) ? [`(${code})`, code] : [code];
  if (/\bawait\b/.test(code))
    forms.unshift(`(async () => (${code.replace(DECLARATION, '').replace(/;?\s*$/, '')}\n))()`);
  for (const form of forms.slice(0, -1)) {
    try {
      return run(form);
    } catch (error) {
      if (!isSyntaxError(error)) throw error;
    }
  }
  return run(code);
}

/** Also one of the context, whose classes are others. */
const isSyntaxError = (error: unknown): error is SyntaxError =>
  (error as { name?: unknown } | null)?.name === 'SyntaxError';

/** More lines may complete it. */
const isUnfinished = (error: unknown): error is SyntaxError =>
  isSyntaxError(error) && /^(Unexpected end of input|Unterminated template|missing \))/.test(error.message);

/** Named and on one line: the stack tells of this prompt and not of what was entered. */
function asError(fault: unknown): Error {
  const { name, message } = Object(fault) as { name?: unknown; message?: unknown };
  const told =
    typeof message === 'string' ? terminalText(`${String(name)}: ${message}`) : terminalText(String(fault));
  const error = new Error(told);
  error.stack = told;
  return error;
}
