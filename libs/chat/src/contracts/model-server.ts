import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface SeenRequest {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: {
    readonly model: string;
    readonly messages: readonly Record<string, unknown>[];
    readonly tools?: readonly Record<string, unknown>[];
    readonly system?: string;
  } & Record<string, unknown>;
  readonly text: string;
}

/** Handles one request of the test. */
export type Script = (response: ServerResponse, request: SeenRequest) => void | Promise<void>;

export interface ModelServer {
  readonly url: string;
  readonly requests: SeenRequest[];
  /** Scripts for the next requests, in order; the last one handles all further requests. */
  script(...scripts: Script[]): void;
  stop(): Promise<void>;
}

/** A server with a provider's protocol that answers, or misbehaves, as scripted. */
export async function startModelServer(): Promise<ModelServer> {
  const requests: SeenRequest[] = [];
  let scripts: Script[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    request.on('end', () => {
      const { url = '', headers } = request;
      const seen = { url, headers, text, body: JSON.parse(text === '' ? '{}' : text) as SeenRequest['body'] };
      requests.push(seen);
      const next = scripts.length > 1 ? scripts.shift() : scripts[0];
      if (next) void next(response, seen);
      else response.writeHead(500).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    script: (...next) => {
      scripts = next;
      requests.length = 0;
    },
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

export const status =
  (code: number, body = '', headers: Record<string, string> = {}): Script =>
  (response) => {
    response.writeHead(code, headers).end(body);
  };

/** The text of an event stream in pieces of a few bytes, so that every boundary is inside a piece. */
export const streamText =
  (text: string, piece = 7): Script =>
  async (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length && !response.destroyed; at += piece) {
      response.write(bytes.subarray(at, at + piece));
      if (at % (piece * 8) === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    response.end();
  };

/** Streams without end, as fast as it is read. */
export const endless =
  (opening: string, again: string): Script =>
  (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write(opening);
    const more = () => {
      if (!response.destroyed) response.write(again, () => setImmediate(more));
    };
    more();
  };

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;

export interface ScriptedCall {
  readonly id?: string;
  readonly name: string;
  /** An object is sent as JSON, a text unchanged. */
  readonly args: unknown;
}

const argumentText = (args: unknown) => (typeof args === 'string' ? args : JSON.stringify(args));

const halves = (text: string): [string, string] => {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
};

/** Chunks of OpenAI's chat completions. */
export const openAi = {
  chunk: (delta: object, finish: string | null = null) =>
    data({
      id: 'c1',
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason: finish }],
    }),
  usage: (prompt: number, completion: number) =>
    data({ choices: [], usage: { prompt_tokens: prompt, completion_tokens: completion } }),
  done: 'data: [DONE]\n\n',

  says(text: string, usage: readonly [number, number] = [10, 5]): Script {
    const pieces = halves(text).map((content) => this.chunk({ content }));
    const opening = this.chunk({ role: 'assistant', content: '' });
    return streamText(opening + pieces.join('') + this.chunk({}, 'stop') + this.usage(...usage) + this.done);
  },

  calls(calls: readonly ScriptedCall[], text = ''): Script {
    const pieces = calls.flatMap(({ id = `call_${Math.random()}`, name, args }, index) => [
      this.chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
      ...halves(argumentText(args)).map((part) =>
        this.chunk({ tool_calls: [{ index, function: { arguments: part } }] }),
      ),
    ]);
    const opening = this.chunk({ role: 'assistant', content: text });
    return streamText(
      opening + pieces.join('') + this.chunk({}, 'tool_calls') + this.usage(20, 8) + this.done,
      61,
    );
  },
};

/** Events of Anthropic's messages. */
export const anthropic = {
  event: (value: { type: string } & Record<string, unknown>) => `event: ${value.type}\n${data(value)}`,
  start(input = 10) {
    return this.event({
      type: 'message_start',
      message: { id: 'm1', usage: { input_tokens: input, output_tokens: 1 } },
    });
  },
  text(index: number, text: string) {
    return (
      this.event({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } }) +
      this.event({ type: 'ping' }) +
      halves(text)
        .map((half) =>
          this.event({ type: 'content_block_delta', index, delta: { type: 'text_delta', text: half } }),
        )
        .join('') +
      this.event({ type: 'content_block_stop', index })
    );
  },
  call(index: number, { id = `toolu_${index}`, name, args }: ScriptedCall) {
    const block = { type: 'tool_use', id, name, input: {} };
    return (
      this.event({ type: 'content_block_start', index, content_block: block }) +
      halves(argumentText(args))
        .map((partial_json) =>
          this.event({
            type: 'content_block_delta',
            index,
            delta: { type: 'input_json_delta', partial_json },
          }),
        )
        .join('') +
      this.event({ type: 'content_block_stop', index })
    );
  },
  end(stop: string, output = 5) {
    return (
      this.event({ type: 'message_delta', delta: { stop_reason: stop }, usage: { output_tokens: output } }) +
      this.event({ type: 'message_stop' })
    );
  },
  says(text: string): Script {
    return streamText(this.start() + this.text(0, text) + this.end('end_turn'));
  },
};
