import { readAnswer } from '../asks/answer-reader.js';
import { questionOf, type WireRequest } from '../asks/question-wire.js';
import { type JsonObject, member } from '../json-object.js';
import { invalidParams } from '../protocol-fault.js';

/**
 * The responses that answer what is open: keys that were not asked are left out, and so is what does not fit its question,
 * which stays open.
 * @throws ProtocolFault for what is no answer at all
 */
export function fittingResponses(
  open: Readonly<Record<string, WireRequest>>,
  responses: JsonObject,
): JsonObject {
  const fitting: Record<string, unknown> = {};
  for (const [key, request] of Object.entries(open)) {
    const sent = member(responses, key);
    const question = questionOf(request);
    if (sent === undefined || !question) continue;
    const reading = readAnswer(question, sent);
    if (reading.ok) fitting[key] = sent;
    else if (reading.fault === 'malformed') throw invalidParams(`Invalid input response: ${key}`);
  }
  return fitting;
}
