/** One server-sent event, or a comment. */
export interface Frame {
  readonly comment?: string;
  readonly id?: string;
  readonly event?: string;
  readonly retry?: number;
  /** Text as sent. */
  readonly data?: string;
}

/** The whole frames of a stream so far; what is not ended by a blank line is left out. */
export function parseFrames(text: string): Frame[] {
  return text.split('\n\n').slice(0, -1).map(parseFrame);
}

function parseFrame(block: string): Frame {
  const frame: Record<string, string | number> = {};
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    const [name, value] = [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
    frame[name === '' ? 'comment' : name] = name === 'retry' ? Number(value) : value;
  }
  return frame;
}

/** The JSON-RPC messages among frames. */
export function listMessages(frames: readonly Frame[]): Record<string, unknown>[] {
  return frames
    .filter(({ data }) => data !== undefined && data !== '')
    .map(({ data }) => JSON.parse(data as string) as Record<string, unknown>);
}
