import type { ClientQuestion } from '#agent';
import { isJsonObject, type JsonObject, member } from '../json-object.js';
import type { Dialect } from '../protocol-versions.js';

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

/** What a client must have declared to be asked this, as a `ClientCapabilities` object. */
export function requiredCapabilities(question: ClientQuestion): JsonObject {
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

/** Whether a client that declared these capabilities can be asked, in a revision that has such questions. */
export function isDeclared(question: ClientQuestion, capabilities: JsonObject, dialect: Dialect): boolean {
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

/** An empty object means forms. Before the modes had names, whatever is truthy did. */
function declaresForm(declared: unknown, { version }: Dialect): boolean {
  if (version < '2025-11-25') return Boolean(declared);
  if (!isJsonObject(declared)) return false;
  return Object.keys(declared).length === 0 || isJsonObject(member(declared, 'form'));
}

/** The question that a request of ours asks; `undefined` for a request that we do not make. */
export function questionOf({ method, params }: WireRequest): ClientQuestion | undefined {
  const { message, mode, url, requestedSchema: schema } = params;
  if (method === 'sampling/createMessage') return { kind: 'sampling', params };
  if (method === 'roots/list') return { kind: 'roots' };
  if (method !== 'elicitation/create' || typeof message !== 'string') return undefined;
  if (mode === 'url') return typeof url === 'string' ? { kind: 'url', message, url } : undefined;
  return isJsonObject(schema) ? { kind: 'form', message, schema } : undefined;
}
