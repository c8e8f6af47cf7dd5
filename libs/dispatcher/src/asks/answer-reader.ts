import { createRequire } from 'node:module';
import type * as AjvPackage from 'ajv';
import type { Ajv, ValidateFunction } from 'ajv';
import type { AnswerTo, ClientQuestion, FormAnswer } from '#agent';
import { isJsonObject, member } from '../json-object.js';

/** `malformed`: not an answer to such a question at all. `unfit`: one whose content is not what was asked for. */
export type AnswerReading<Question extends ClientQuestion> =
  | { readonly ok: true; readonly answer: AnswerTo<Question> }
  | { readonly ok: false; readonly fault: 'malformed' | 'unfit' };

const ACTIONS = ['accept', 'decline', 'cancel'] as const;
const MALFORMED = { ok: false, fault: 'malformed' } as const;
const UNFIT = { ok: false, fault: 'unfit' } as const;

/** Reads what a client sent as the answer to a question: nothing of it is believed before it fits. */
export function readAnswer<Question extends ClientQuestion>(
  question: Question,
  sent: unknown,
): AnswerReading<Question> {
  return reading(question, sent) as AnswerReading<Question>;
}

function reading(question: ClientQuestion, sent: unknown): AnswerReading<ClientQuestion> {
  if (!isJsonObject(sent)) return MALFORMED;
  switch (question.kind) {
    case 'form':
      return form(question.schema, sent);
    case 'url': {
      const action = ACTIONS.find((known) => known === member(sent, 'action'));
      return action ? { ok: true, answer: { action } } : MALFORMED;
    }
    case 'sampling':
      return isJsonObject(sent['content']) || Array.isArray(sent['content'])
        ? { ok: true, answer: { ...sent, content: sent['content'] } }
        : MALFORMED;
    case 'roots':
      return roots(member(sent, 'roots'));
  }
}

function form(schema: object, sent: object): AnswerReading<ClientQuestion> {
  const action = ACTIONS.find((known) => known === member(sent, 'action'));
  if (!action) return MALFORMED;
  if (action !== 'accept') return { ok: true, answer: { action } satisfies FormAnswer };
  const content = member(sent, 'content');
  if (!isJsonObject(content)) return content === undefined ? UNFIT : MALFORMED;
  return validatorOf(schema)(content) ? { ok: true, answer: { action, content } } : UNFIT;
}

function roots(listed: unknown): AnswerReading<ClientQuestion> {
  if (!Array.isArray(listed)) return MALFORMED;
  const known = (listed as unknown[]).map((root) => {
    const uri = member(root, 'uri');
    return typeof uri === 'string' ? { ...(root as object), uri } : undefined;
  });
  return known.every((root) => root !== undefined) ? { ok: true, answer: { roots: known } } : MALFORMED;
}

let opened: Ajv | undefined;
const validators = new WeakMap<object, ValidateFunction>();

/** Loaded with the first form that somebody answers. */
function compiler(): Ajv {
  if (opened) return opened;
  const { Ajv: Compiler } = createRequire(import.meta.url)('ajv') as typeof AjvPackage;
  opened = new Compiler({ strict: false, validateFormats: false });
  return opened;
}

/** Compiled once per schema object: a tool's schema is mostly one constant. */
function validatorOf(schema: object): ValidateFunction {
  let known = validators.get(schema);
  if (!known) {
    known = compiler().compile(schema);
    // Otherwise a schema that is made anew for every call would be kept for ever.
    compiler().removeSchema(schema);
    validators.set(schema, known);
  }
  return known;
}
