// One client of any of the servers: the handshake, then requests, over connections that stay open.
import { request } from '../load.mjs';

const ACCEPT = 'application/json, text/event-stream';
const VERSION = '2025-06-18';
const clientInfo = { name: 'bench', version: '1' };

/** The answer in a body, whether it came as JSON or as events. */
function answerIn(text) {
  if (text.startsWith('{')) return JSON.parse(text);
  const data = text.split('\n').filter((line) => line.startsWith('data: {'));
  return JSON.parse(data.at(-1).slice('data: '.length));
}

let lastId = 0;
/** Ids are never used twice: a server with sessions matches answers to requests by them. */
const nextId = () => (lastId += 1);

export class Conversation {
  constructor(url, agent, headers = {}) {
    this.url = url;
    this.agent = agent;
    this.headers = { accept: ACCEPT, 'mcp-protocol-version': VERSION, ...headers };
  }

  async post(method, params, id) {
    const body = JSON.stringify({ jsonrpc: '2.0', ...(id && { id }), method, params });
    return request(this.agent, this.url, body, this.headers);
  }

  async ask(method, params = {}) {
    const answer = await this.post(method, params, nextId());
    if (answer.status !== 200)
      throw new Error(`${method} was answered with ${answer.status}: ${answer.text}`);
    return answer;
  }

  async open() {
    const { headers } = await this.ask('initialize', {
      protocolVersion: VERSION,
      capabilities: {},
      clientInfo,
    });
    this.session = headers['mcp-session-id'];
    if (this.session) this.headers['mcp-session-id'] = this.session;
    await this.post('notifications/initialized');
    return this;
  }

  /** Sessions are ended by the client that opened them. */
  async close() {
    if (this.session) await request(this.agent, this.url, '', this.headers, 'DELETE');
  }

  /** @throws when the answer is a refusal: what does not do the work must not be measured */
  async result(method, params) {
    const { result, error } = answerIn((await this.ask(method, params)).text);
    if (error || result.isError) throw new Error(`${method}: ${JSON.stringify(error ?? result)}`);
    return result;
  }
}
