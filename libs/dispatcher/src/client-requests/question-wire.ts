import {
  type ClientAnswerTo,
  type ClientQuestion,
  type FormAnswer,
  isJsonObject,
  type JsonObject,
  member,
} from '#core';
import { compileJsonSchema, type JsonSchemaCheck } from '#schema';
import { type Dialect, type DeclaringRequest, readDialect } from '../protocol.js';

/** A question as a JSON-RPC request without its envelope. */
export interface WireRequest {
  readonly method: string;
  readonly params: JsonObject;
}

export function wireRequest(question: ClientQuestion, dialect: Dialect): WireRequest {
  switch (question.kind) {
    case 'form': {
      const { message, schema, meta } = question;
      const mode = dialect.era === 'modern' && { mode: 'form' };
      const params = { ...mode, message, requestedSchema: schema, ...(meta && { _meta: meta }) };
      return { method: 'elicitation/create', params };
    }
    case 'url': {
      const { message, url } = question;
      return { method: 'elicitation/create', params: { mode: 'url', message, url } };
    }
    case 'sampling':
      return { method: 'sampling/createMessage', params: question.params };
    case 'roots':
      return { method: 'roots/list', params: {} };
  }
}

/** The capabilities that a client must declare to receive this request, as a `ClientCapabilities` object. */
export function listRequiredCapabilities(question: ClientQuestion): JsonObject {
  switch (question.kind) {
    case 'form':
      return { elicitation: { form: {} } };
    case 'url':
      return { elicitation: { url: {} } };
    case 'sampling':
      return { sampling: 'tools' in question.params ? { tools: {} } : {} };
    case 'roots':
      return { roots: {} };
  }
}

/** Whether a client with these capabilities can answer the request, in a revision that has such requests. */
export function isDeclared(question: ClientQuestion, request: DeclaringRequest): boolean {
  const capabilities = request.transport.clientCapabilities;
  const dialect = readDialect(request);
  switch (question.kind) {
    case 'form':
      return dialect.version >= '2025-06-18' && declaresForm(member(capabilities, 'elicitation'), dialect);
    case 'url':
      return (
        dialect.version >= '2025-11-25' && isJsonObject(member(member(capabilities, 'elicitation'), 'url'))
      );
    case 'sampling': {
      const sampling = member(capabilities, 'sampling');
      if (!isJsonObject(sampling)) return false;
      return !('tools' in question.params) || isJsonObject(member(sampling, 'tools'));
    }
    case 'roots':
      return isJsonObject(member(capabilities, 'roots'));
  }
}

/** An empty object means forms. Before the modes had names, any truthy value did. */
function declaresForm(declared: unknown, { version }: Dialect): boolean {
  if (version < '2025-11-25') return Boolean(declared);
  if (!isJsonObject(declared)) return false;
  return Object.keys(declared).length === 0 || isJsonObject(member(declared, 'form'));
}

/** The client request in a JSON-RPC request of the server; `undefined` for any other request. */
export function toQuestion({ method, params }: WireRequest): ClientQuestion | undefined {
  const { message, mode, url, requestedSchema: schema } = params;
  if (method === 'sampling/createMessage') return { kind: 'sampling', params };
  if (method === 'roots/list') return { kind: 'roots' };
  if (method !== 'elicitation/create' || typeof message !== 'string') return undefined;
  if (mode === 'url') return typeof url === 'string' ? { kind: 'url', message, url } : undefined;
  return isJsonObject(schema) ? { kind: 'form', message, schema } : undefined;
}

/** `malformed`: not an answer to such a request. `unfit`: the content does not match the requested schema. */
export type AnswerReading<Question extends ClientQuestion> =
  | { readonly ok: true; readonly answer: ClientAnswerTo<Question> }
  | { readonly ok: false; readonly fault: 'malformed' | 'unfit' };

const ACTIONS = ['accept', 'decline', 'cancel'] as const;
const MALFORMED_ANSWER = { ok: false, fault: 'malformed' } as const;
const UNFIT = { ok: false, fault: 'unfit' } as const;

/** Validates the answer of a client. Nothing of it is used before it fits. */
export function readAnswer<Question extends ClientQuestion>(
  question: Question,
  sent: unknown,
): AnswerReading<Question> {
  return reading(question, sent) as AnswerReading<Question>;
}

function reading(question: ClientQuestion, sent: unknown): AnswerReading<ClientQuestion> {
  if (!isJsonObject(sent)) return MALFORMED_ANSWER;
  switch (question.kind) {
    case 'form':
      return form(question.schema, sent);
    case 'url': {
      const action = ACTIONS.find((known) => known === member(sent, 'action'));
      return action ? { ok: true, answer: { action } } : MALFORMED_ANSWER;
    }
    case 'sampling':
      return isJsonObject(sent['content']) || Array.isArray(sent['content'])
        ? { ok: true, answer: { ...sent, content: sent['content'] } }
        : MALFORMED_ANSWER;
    case 'roots':
      return roots(member(sent, 'roots'));
  }
}

function form(schema: object, sent: object): AnswerReading<ClientQuestion> {
  const action = ACTIONS.find((known) => known === member(sent, 'action'));
  if (!action) return MALFORMED_ANSWER;
  if (action !== 'accept') return { ok: true, answer: { action } satisfies FormAnswer };
  const content = member(sent, 'content');
  if (!isJsonObject(content)) return content === undefined ? UNFIT : MALFORMED_ANSWER;
  return fitsSchema(schema, content) ? { ok: true, answer: { action, content } } : UNFIT;
}

function roots(listed: unknown): AnswerReading<ClientQuestion> {
  if (!Array.isArray(listed)) return MALFORMED_ANSWER;
  const known = (listed as unknown[]).map((root) => {
    const uri = member(root, 'uri');
    return typeof uri === 'string' ? { ...(root as object), uri } : undefined;
  });
  return known.every((root) => root !== undefined)
    ? { ok: true, answer: { roots: known } }
    : MALFORMED_ANSWER;
}

const checks = new WeakMap<object, JsonSchemaCheck>();

/** Compiled once per schema object: the schema of a tool is usually a constant. */
function fitsSchema(schema: object, content: object): boolean {
  let check = checks.get(schema);
  if (!check) {
    // The protocol defines the dialect of forms.
    check = compileJsonSchema({ ...schema, $schema: undefined });
    checks.set(schema, check);
  }
  return check(content).length === 0;
}
