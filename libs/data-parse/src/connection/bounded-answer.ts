import { readBoundedText } from '#core';
import { type AnswerInFlight, type AnswerLeft, MIN_VALUE_BYTES } from '#data';
import { parseServerError } from './parse-errors.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;
const CLOSING_BRACKET = 0x5d;
const CLOSING_BRACE = 0x7d;

/** No row is nested deeper: MongoDB stores 100 levels. What reads rows calls itself once per level. */
const MAX_DEPTH = 300;

/**
 * Bytes that JSON counts for while it arrives: its own, and `MIN_VALUE_BYTES` for every value. Creates no objects.
 * @throws StoreError `noteFailure` for JSON that is nested deeper than any row
 */
export class JsonWeight {
  private inText = false;
  private escaped = false;
  private depth = 0;

  /** @returns the bytes that this chunk adds */
  add(chunk: Uint8Array): number {
    let values = 0;
    for (const byte of chunk) {
      if (this.inText) {
        if (this.escaped) this.escaped = false;
        else if (byte === BACKSLASH) this.escaped = true;
        else if (byte === QUOTE) this.inText = false;
      } else if (byte === QUOTE) this.inText = true;
      else if (byte === COMMA) values += 1;
      else if (byte === BRACKET || byte === BRACE) {
        values += 1;
        this.depth += 1;
        if (this.depth > MAX_DEPTH) throw parseServerError('failed', 'the answer is nested too deep');
      } else if (byte === CLOSING_BRACKET || byte === CLOSING_BRACE) this.depth -= 1;
    }
    return chunk.byteLength + values * MIN_VALUE_BYTES;
  }
}

/**
 * Reads the body of an answer as JSON, up to the limit.
 * @throws StoreError `noteFailure` for an answer that is larger or is not JSON, `unavailable` for the error page of a gateway
 */
export async function readBoundedJson(response: Response, maxBytes: number): Promise<unknown> {
  const tooLarge = () => parseServerError('failed', `the answer is larger than ${maxBytes} bytes`);
  return parseAnswer(await readBoundedText(response, maxBytes, tooLarge), response);
}

/**
 * As `readBoundedJson`, within the limits of answers.
 * @throws StoreError `too_large`; else as `readBoundedJson`
 */
export async function readBoundedAnswer(
  response: Response,
  answer: AnswerInFlight,
  { bytes: limit }: AnswerLeft,
): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  const weight = new JsonWeight();
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    const weighed = weight.add(chunk);
    // Leaving the loop cancels the stream.
    answer.noteArrival(chunk.byteLength, () => weighed, limit);
    chunks.push(chunk);
  }
  return answer.become(() => parseAnswer(Buffer.concat(chunks).toString('utf8'), response));
}

function parseAnswer(text: string, { status }: Response): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The page of a gateway: there is no server behind it.
    const code = status >= 500 ? 'unavailable' : 'failed';
    throw parseServerError(code, `the answer (status ${status}) is not JSON`);
  }
}
