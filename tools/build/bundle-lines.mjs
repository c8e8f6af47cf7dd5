// Where the lines of a bundle come from, for stacks in the log (src/logging): a source map of this size costs hundreds of
// milliseconds and many megabytes when it is read, this table a few.
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, relative, resolve } from 'node:path';

/** @param {string} file */
const mapOf = (file) => new SourceMap(JSON.parse(readFileSync(file, 'utf8')));

/**
 * @param {string} bundle file with `.map` beside it
 * @param {string} root folder that names are relative to
 * @returns {{ sources: string[], runs: number[] }} runs of lines, three numbers each: the first line in the bundle, the index of its
 * source (-1: not ours) and the line there; the lines of a run follow each other in both
 */
export function linesOf(bundle, root) {
  const map = mapOf(`${bundle}.map`);
  const compiled = new Map();
  /** @type {string[]} */
  const sources = [];
  const runs = [];
  /** @param {string} name */
  const indexOf = (name) => (sources.includes(name) ? sources.indexOf(name) : sources.push(name) - 1);
  /** @param {number} line @param {number} column */
  const originOf = (line, column) => {
    const entry = map.findEntry(line, column);
    if (!('originalSource' in entry)) return null;
    const { originalSource, originalLine } = entry;
    if (originalSource === undefined || originalSource.includes('node_modules/')) return null;
    const file = resolve(dirname(bundle), originalSource);
    if (!compiled.has(file)) compiled.set(file, existsSync(`${file}.map`) ? mapOf(`${file}.map`) : null);
    const written = compiled.get(file)?.findEntry(originalLine, 1_000);
    if (written?.originalSource === undefined) return null;
    return {
      source: indexOf(relative(root, resolve(dirname(file), written.originalSource))),
      line: written.originalLine,
    };
  };
  const text = readFileSync(bundle, 'utf8').split('\n');
  let last = { source: -1, line: 0, at: 0 };
  for (const [at, content] of text.entries()) {
    const { source, line } = originOf(at, content.length) ?? { source: -1, line: 0 };
    const follows = source === last.source && (source === -1 || line - last.line === at - last.at);
    if (!follows) runs.push(at + 1, source, line + 1);
    if (!follows) last = { source, line, at };
  }
  return { sources, runs };
}
