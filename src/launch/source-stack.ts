import { readFileSync } from 'node:fs';

/** What tools/build/bundle-lines.mjs writes beside a bundle. */
interface BundleLines {
  readonly sources: readonly string[];
  /** Runs of lines, three numbers each: first line in the bundle, index of the source or -1, line there. */
  readonly runs: readonly number[];
}

const NUMBERS_PER_RUN = 3;

const FRAME = /[^\s()]*[\\/](programs|database)\.cjs:(\d{1,9}):\d{1,9}/g;

const tables = new Map<string, BundleLines | null>();

/** Read by the first stack that needs it, and kept. */
function readLines(bundle: string): BundleLines | null {
  let table = tables.get(bundle);
  if (table !== undefined) return table;
  try {
    const file = new URL(`./${bundle}.cjs.lines.json`, import.meta.url);
    table = JSON.parse(readFileSync(file, 'utf8')) as BundleLines;
  } catch {
    table = null;
  }
  tables.set(bundle, table);
  return table;
}

/** A line of a bundle as `file:line` of the sources. Undefined: it is of a package. */
export function sourceLine({ sources, runs }: BundleLines, line: number): string | undefined {
  let from = 0;
  let to = runs.length / NUMBERS_PER_RUN;
  // The last run that begins at or before the line.
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((runs[middle * NUMBERS_PER_RUN] ?? 0) <= line) from = middle + 1;
    else to = middle;
  }
  const [start = 0, source = -1, there = 0] = runs.slice(
    (from - 1) * NUMBERS_PER_RUN,
    from * NUMBERS_PER_RUN,
  );
  return from === 0 || source === -1 ? undefined : `${sources[source]}:${there + line - start}`;
}

/** A stack with the files and lines of the sources in the place of those of a bundle. */
export function sourceStack(stack: string): string {
  return stack.replace(FRAME, (frame, bundle: string, line: string) => {
    const lines = readLines(bundle);
    return (lines && sourceLine(lines, Number(line))) ?? frame;
  });
}
