// A client of both eras on plain requests: what was answered and what never arrived must be kept apart, which a library hides.
export const TASKS = 'io.modelcontextprotocol/tasks';
const MODERN = '2026-07-28';
const SESSIONS = '2025-11-25';
const EVENTS = 'application/json, text/event-stream';

let lastId = 0;
const nextId = () => (lastId += 1);

/** The JSON of an answer, whether it came as a body or as the last event of a stream. */
export function answerIn(text) {
  if (text.startsWith('{')) return JSON.parse(text);
  const events = text.split('\n').filter((line) => line.startsWith('data: {'));
  return events.length === 0 ? {} : JSON.parse(events.at(-1).slice('data: '.length));
}

async function post(url, headers, message, signal) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    signal,
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, ...answerIn(text) };
}

/**
 * Reads events until the stream ends, for whatever reason.
 * @param onMessage is called with the JSON of each event
 */
async function readEvents(body, onMessage) {
  const decoder = new TextDecoder();
  let left = '';
  for await (const chunk of body) {
    left += decoder.decode(chunk, { stream: true });
    const lines = left.split('\n');
    left = lines.pop() ?? '';
    for (const line of lines)
      if (line.startsWith('data: {')) onMessage(JSON.parse(line.slice('data: '.length)));
  }
}

/** An open stream of messages. `ended` resolves when it is over, with the error that cut it if there was one. */
export class Stream {
  messages = [];
  isOpen = false;
  #leaving = new AbortController();

  /** @param {(message: any) => void} onMessage is called with each message as it comes */
  constructor(onMessage = () => {}) {
    this.onMessage = onMessage;
  }

  /** @param init method and body of the request, and headers besides what it accepts */
  async open(url, { headers, ...init }) {
    const response = await fetch(url, {
      ...init,
      headers: { Accept: 'text/event-stream', ...headers },
      signal: this.#leaving.signal,
    });
    this.status = response.status;
    this.isOpen = (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
    if (!this.isOpen) {
      this.refusal = await response.text();
      this.ended = Promise.resolve();
      return this;
    }
    this.ended = readEvents(response.body, (message) => {
      this.messages.push(message);
      this.onMessage(message);
    }).then(
      () => void (this.isOpen = false),
      (error) => {
        this.isOpen = false;
        return error;
      },
    );
    return this;
  }

  close() {
    this.#leaving.abort();
  }
}

/** Requests of 2026-07-28: each says by itself who sends it and what the client can do. */
export class ModernClient {
  /** @param headers a function where credentials change over time */
  constructor(url, headers) {
    this.url = url;
    this.credentials = typeof headers === 'function' ? headers : () => headers;
  }

  #request(method, params, extensions) {
    const named = params.name ?? params.taskId ?? params.uri;
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': MODERN,
      'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} }, extensions },
    };
    return {
      headers: {
        'Content-Type': 'application/json',
        'MCP-Protocol-Version': MODERN,
        'Mcp-Method': method,
        ...(named !== undefined && { 'Mcp-Name': named }),
        ...this.credentials(),
      },
      message: { id: nextId(), method, params: { ...params, _meta } },
    };
  }

  /**
   * @param {string} method
   * @param {Record<string, unknown>} params
   * @param {{ extensions?: Record<string, object>, signal?: AbortSignal }} options
   * @returns status, text, and `result` or `error`
   */
  ask(method, params = {}, { extensions = { [TASKS]: {} }, signal } = {}) {
    const { headers, message } = this.#request(method, params, extensions);
    return post(this.url, { Accept: EVENTS, ...headers }, message, signal);
  }

  /**
   * @param {string} name
   * @param {object} args
   * @param {{ extensions?: Record<string, object>, signal?: AbortSignal } & Record<string, unknown>} more extensions that the
   * client declares, answers and state of an earlier round
   */
  call(name, args, { extensions = {}, signal, ...more } = {}) {
    return this.ask('tools/call', { name, arguments: args, ...more }, { extensions, signal });
  }

  /** Opens a stream of notifications. @returns it once the service answered */
  async listen(notifications, onMessage) {
    const { headers, message } = this.#request('subscriptions/listen', { notifications }, {});
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    return new Stream(onMessage).open(this.url, { method: 'POST', headers, body });
  }
}

/** A session of 2025-11-25. */
export class SessionClient {
  constructor(url, headers) {
    this.url = url;
    this.credentials = typeof headers === 'function' ? headers : () => headers;
  }

  get #headers() {
    const session = this.session && { 'Mcp-Session-Id': this.session, 'MCP-Protocol-Version': SESSIONS };
    return { ...session, ...this.credentials() };
  }

  /**
   * @param {string} method
   * @param {object} params
   * @param {{ accept?: string, signal?: AbortSignal }} options `accept`: what answers may be, `application/json` for bodies alone
   */
  ask(method, params = {}, { accept = EVENTS, signal } = {}) {
    const message = { id: nextId(), method, params };
    return post(this.url, { Accept: accept, ...this.#headers }, message, signal);
  }

  /** @returns the answer of `initialize`; a session is open when it had one */
  async initialize() {
    this.session = undefined;
    const answer = await this.ask('initialize', {
      protocolVersion: SESSIONS,
      capabilities: {},
      clientInfo: { name: 'proof', version: '1' },
    });
    if (answer.result) this.session = answer.headers.get('mcp-session-id') ?? undefined;
    return answer;
  }

  listen(onMessage) {
    return new Stream(onMessage).open(this.url, { method: 'GET', headers: this.#headers });
  }

  async end() {
    const response = await fetch(this.url, { method: 'DELETE', headers: this.#headers });
    return response.status;
  }
}
