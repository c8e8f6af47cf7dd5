type Style = 'bold' | 'dim' | 'red' | 'yellow';

const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, yellow: 33 };

/** Text in a style, or as it is. */
export type Paint = (style: Style, text: string) => string;

interface ColourStream {
  readonly isTTY?: boolean;
}

/** Colours only where somebody looks, and not against their will (NO_COLOR). */
export function painterFor(stream: ColourStream, env: NodeJS.ProcessEnv = process.env): Paint {
  const colours = movesCursor(stream, env) && !env['NO_COLOR'];
  return (style, text) => (colours ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text);
}

/** Whether lines can be taken back. */
export function movesCursor(stream: ColourStream, env: NodeJS.ProcessEnv = process.env): boolean {
  return stream.isTTY === true && env['TERM'] !== 'dumb';
}
