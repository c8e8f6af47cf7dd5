/** Why a request to the console is not served: an HTTP status, its words and headers. Both are told to whoever asks. */
export class ConsoleRefused extends Error {
  override readonly name = 'ConsoleRefused';
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}
