/** Why a request beside MCP is not served: an HTTP status, its words and headers. All of it is told to whoever asks. */
export class NotServed extends Error {
  override readonly name = 'NotServed';
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** What the checks before authentication come to, in the words of routes that speak no JSON-RPC. */
const WORDS: Readonly<Record<number, string>> = {
  403: 'Host or Origin not allowed',
  429: 'Too Many Requests',
  503: 'server busy',
};

export function notServed(status: number, headers: Readonly<Record<string, string>> = {}): NotServed {
  return new NotServed(status, WORDS[status] ?? 'Bad Request', headers);
}
