import { weighFields, withoutField } from './oversize-refusal.js';
import { type Envelope, isEnvelope } from './shorter-envelopes.js';

/** Tools that answer with the row that they wrote, or propose to write. */
const WRITING_TOOLS: ReadonlySet<string> = new Set(['create_object', 'update_object', 'delete_object']);
const MEMBERS = ['object', 'before', 'after'] as const;

/**
 * Answers to a write without the heaviest field of its row, without the two heaviest, and so on. A write that has happened is never
 * answered with a refusal: it would be made again.
 */
export function* shortenWritten(toolName: string, answer: Envelope, cap: number): Generator<Envelope> {
  if (!WRITING_TOOLS.has(toolName)) return;
  const dropped: string[] = [];
  let shorter = answer;
  for (const { field } of weighFields(MEMBERS.map((member) => answer[member]))) {
    dropped.push(field);
    const rows = MEMBERS.filter((member) => isEnvelope(shorter[member]));
    shorter = {
      ...shorter,
      ...Object.fromEntries(rows.map((member) => [member, withoutField(shorter[member], field)])),
    };
    yield {
      ...shorter,
      _truncated: {
        reason: 'response_exceeded_max_bytes',
        dropped_fields: [...dropped],
        hint: `The call is done: do not repeat it. To stay within ${cap} bytes, fields of the row were left out: get_object reads them.`,
      },
    };
  }
}
