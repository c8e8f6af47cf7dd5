import { readFileSync, statSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import {
  Composer,
  type CST,
  type Document,
  isPair,
  isScalar,
  isSeq,
  Lexer,
  type ErrorCode,
  LineCounter,
  Parser,
  visit,
  isAlias,
  isMap,
  type Node,
  type Pair,
} from 'yaml';
import { isExactNumber, withoutMark, isJsonObject } from '#core';
import { ConfigError, type ConfigIssue, describeUnreadable } from './config-error.js';
import { type Environment, readSecretFile, SecretFileError } from './environment.js';

/** Which of several processes this is: the first process sets it when it starts the others. */
export const PROCESS_VARIABLE = 'PARLEY_PROCESS';

/** The number of this process among several, from 1; null: it is the only one, or the first one. */
export function processNumber(env: Environment): number | null {
  const number = Number(env[PROCESS_VARIABLE]);
  return Number.isInteger(number) && number > 0 ? number : null;
}

const REFERENCE = /\$\{(?:file:([^}]+)|([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?)\}/g;

/** Where a part of a value came from. */
export interface ConfigReference {
  /** Dotted path of the value inside the file. */
  readonly path: string;
  readonly kind: 'file' | 'environment' | 'fallback';
  /** Of the file, or of the variable. */
  readonly name: string;
}

/** A plain (unquoted) value is typed after substitution as YAML would have typed it; a quoted one stays text. */
function retype(text: string): unknown {
  // Digits that a number would lose stay text.
  if (/^-?\d+(\.\d+)?$/.test(text)) return isExactNumber(text) ? Number(text) : text;
  if (text === 'true' || text === 'false') return text === 'true';
  return text === 'null' ? null : text;
}

/**
 * Reads YAML or JSON with `${NAME}` and `${NAME:-default}` inside values replaced from the environment, and `${file:PATH}`
 * from a file beside it. What is put in is not looked through again.
 * @param onReference called with every reference that was replaced
 * @throws ConfigError when the file is missing, is not YAML, or names variables and files that are not there
 */
export function readConfigFile(
  path: string,
  env: Environment,
  onReference: (reference: ConfigReference) => void = () => {},
): unknown {
  const { value, errors } = configFile(path, env, onReference);
  if (errors.length > 0) throw new ConfigError(path, errors);
  return value;
}

/** Bytes: a configuration is far shorter. */
const LONGEST_FILE = 4 * 1024 * 1024;

/** What could be read of a file. */
export interface ConfigFile {
  readonly value: unknown;
  /** All that was read of it, as text too where it is no YAML: who wrote it may use its secrets, whatever is wrong with it. */
  readonly held?: unknown;
  /** What is wrong with it. */
  readonly errors: readonly ConfigIssue[];
  /** Says of an issue where the file has what it is about, as far as it has. */
  locate(issue: ConfigIssue): ConfigIssue;
}

/** The same, with what is wrong beside what could be read; a value that names nothing is an error at its path. */
export function configFile(
  path: string,
  env: Environment,
  onReference: (reference: ConfigReference) => void = () => {},
): ConfigFile {
  const at = nameFile(path);
  const unusable = (message: string) => ({
    value: undefined,
    errors: [{ path: '', at, message }],
    locate: (issue: ConfigIssue) => issue,
  });
  let text: string;
  try {
    const found = statSync(path);
    // A pipe blocks until somebody writes, and is read once: a reload would wait for ever.
    if (!found.isFile()) return unusable('is not a file: write the configuration into one, and name it');
    if (found.size > LONGEST_FILE) return unusable(`is longer than ${LONGEST_FILE} bytes`);
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return unusable(code === 'ENOENT' ? 'no such file' : describeUnreadable(error));
  }
  try {
    return parseFile(text, { path, at, env, onReference });
  } catch (error) {
    if (isTooMuch(error)) return { ...unusable(TOO_MUCH), held: replaceAnyhow(text, path, env) };
    throw error;
  }
}

interface FileReading {
  readonly path: string;
  /** The file as issues name it. */
  readonly at: string;
  readonly env: Environment;
  readonly onReference: (reference: ConfigReference) => void;
}

/** A file as people name it: relative to the working directory where it is below it. */
function nameFile(path: string): string {
  const near = relative(process.cwd(), path);
  return near === '' || near.startsWith('..') ? path : near;
}

/** The defaults would be meant by it, and whatever emptied the file did not mean them. */
const EMPTY =
  'is empty: write into it what agents may read (`parley init` reads a database for that), or remove the file';

const TOO_MUCH = 'repeats or nests its parts more often than a configuration can mean';

/** What the parser says in words of its options. */
const YAML_ERRORS: Readonly<Partial<Record<ErrorCode, string>>> = {
  RESOURCE_EXHAUSTION: TOO_MUCH,
  NON_STRING_KEY: 'a name must be a text, not a list or an object',
};

/** Without the part of the file that the parser repeats: it may be a key, and as long as the file. */
const withoutContent = (code: ErrorCode, message: string): string =>
  code === 'UNEXPECTED_TOKEN' ? message.replace(/:[^]*$/, '') : message;

interface ReadDocument {
  readonly document: Document;
  readonly errors: ConfigIssue[];
  readonly locate: ConfigFile['locate'];
}

/** How deep the parts of a configuration may nest: far more than any needs, far less than fills a stack. */
const MAX_NESTING = 200;

/** How often an anchor may be used, by aliases of aliases too: by each of many agents, not without end. */
const ALIASES = { maxAliasCount: 100_000 };

/**
 * The tokens of a text. What nests deeper than `MAX_NESTING` ends them, before it is made a document: what fills the stack while a
 * regular expression is compiled ends the process.
 * @throws RangeError
 */
function* readTokens(text: string, lines: LineCounter): Generator<CST.Token> {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > MAX_NESTING) throw new RangeError(TOO_MUCH);
  }
  yield* parser.end();
}

/** @param file as issues name it */
function parseText(written: string, file: string): ReadDocument {
  // The parser takes no list behind a byte order mark.
  const text = withoutMark(written);
  const lines = new LineCounter();
  const composed = new Composer({ prettyErrors: false, stringKeys: true }).compose(
    readTokens(text, lines),
    true,
    text.length,
  );
  // One document is made even of an empty text.
  const [document, another] = [...composed] as [Document, Document?];
  const toPlace = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  const locate = (issue: ConfigIssue): ConfigIssue => {
    const [offset] = (issue.at === undefined && findNode(document, issue.path)?.range) || [];
    return offset === undefined ? issue : { ...issue, at: toPlace(offset) };
  };
  if (another) {
    const message = 'a second document begins here: write all of the configuration as one';
    return { document, errors: [{ path: '', at: toPlace(another.range?.[0] ?? 0), message }], locate };
  }
  if (document.errors.length > 0) {
    const errors = document.errors.map(({ code, message, pos }) => ({
      path: '',
      at: toPlace(pos[0]),
      message: YAML_ERRORS[code] ?? withoutContent(code, message),
    }));
    return { document, errors, locate };
  }
  return { document, errors: [...splitNames(document), ...inexactNumbers(document)], locate };
}

/** Aliases of aliases, and texts that are nested without end. */
const isTooMuch = (error: unknown) => error instanceof ReferenceError || error instanceof RangeError;

/** Reads YAML or JSON as it is written: nothing in it is replaced. @param name of the text in its issues */
export function readYaml(text: string, name: string): ConfigFile {
  try {
    const { document, errors, locate } = parseText(text, name);
    const value: unknown = document.errors.length > 0 ? undefined : document.toJS(ALIASES);
    return { value, errors: errors.map(locate), locate };
  } catch (error) {
    if (!isTooMuch(error)) throw error;
    return {
      value: undefined,
      errors: [{ path: '', at: name, message: TOO_MUCH }],
      locate: (issue) => issue,
    };
  }
}

function parseFile(text: string, { path, at: name, env, onReference }: FileReading): ConfigFile {
  const { document, errors, locate: locatePart } = parseText(text, name);
  const asText = errors.length > 0 ? [replaceAnyhow(text, path, env)] : [];
  if (document.errors.length > 0) return { value: undefined, held: asText, errors, locate: locatePart };
  /** By path, of the values that a variable without text is a part of. */
  const gaps = new Map<string, string>();
  const locate = (issue: ConfigIssue): ConfigIssue => {
    const gap = issue.at === undefined ? gaps.get(issue.path) : undefined;
    const { message } = issue;
    return locatePart(gap === undefined ? issue : { ...issue, message: `${message}; ${gap}` });
  };
  visit(document, {
    Scalar: (key, node, ancestors) => {
      if (key === 'key' || typeof node.value !== 'string' || !node.value.includes('${')) return;
      const at = toPath(ancestors, key);
      let secret = false;
      const substituted = node.value.replace(
        REFERENCE,
        (_, file: string | undefined, name = '', fallback?: string) => {
          if (file !== undefined) {
            secret = true;
            return readContent(resolve(dirname(path), file), at, onReference, errors);
          }
          const own = Object.hasOwn(env, name) ? env[name] : undefined;
          const value = own ?? fallback;
          if (value === undefined)
            errors.push({ path: at, message: `environment variable ${name} is not set` });
          else onReference({ path: at, kind: own === undefined ? 'fallback' : 'environment', name });
          if (value === '')
            gaps.set(at, `environment variable ${name} is ${own === undefined ? 'not set' : 'empty'}`);
          return value ?? '';
        },
      );
      // A secret of digits is still a secret, not a number.
      node.value = node.type === 'PLAIN' && !secret ? retype(substituted) : substituted;
    },
  });
  const value: unknown = document.toJS(ALIASES) ?? {};
  if (isJsonObject(value) && Object.keys(value).length === 0)
    return { value: undefined, errors: [{ path: '', at: name, message: EMPTY }], locate };
  return { value, held: [value, ...asText], errors, locate };
}

/** The text of a file that is not read as YAML, with what it refers to. */
const replaceAnyhow = (text: string, path: string, env: Environment): string =>
  text.replace(REFERENCE, (_, file: string | undefined, name = '', fallback = '') =>
    file === undefined
      ? ((Object.hasOwn(env, name) ? env[name] : undefined) ?? fallback)
      : readContent(resolve(dirname(path), file), '', () => {}, []),
  );

/** The numbers of a YAML document that a double does not hold. */
function inexactNumbers(document: Document): ConfigIssue[] {
  const found: ConfigIssue[] = [];
  visit(document, {
    Scalar: (key, { value, source = '' }, ancestors) => {
      // `.inf` and `.nan` are what they say.
      if (typeof value !== 'number' || !/\d/.test(source) || isExactNumber(source)) return;
      // Its digits may be a key.
      const message = 'has more digits than a number holds exactly: write it in quotes, as text';
      found.push({ path: toPath(ancestors, key), message });
    },
  });
  return found;
}

/**
 * YAML takes `{ apiKey:x }` for a name without a value. It is read as it was meant, so that no error repeats the rest of the name, which
 * may be a secret.
 */
function splitNames(document: Document): ConfigIssue[] {
  const found: ConfigIssue[] = [];
  visit(document, {
    Pair: (key, pair, ancestors) => {
      if (pair.value !== null || !isScalar(pair.key) || pair.key.type !== 'PLAIN') return;
      const [, name, rest] = /^([^:]+):([^]+)$/.exec(String(pair.key.value)) ?? [];
      if (name === undefined) return;
      pair.key.value = name;
      pair.value = document.createNode(rest);
      found.push({ path: toPath([...ancestors, pair], key), message: 'needs a blank behind its colon' });
    },
  });
  return found;
}

function readContent(
  file: string,
  path: string,
  onReference: (reference: ConfigReference) => void,
  errors: ConfigIssue[],
): string {
  try {
    const content = readSecretFile(file);
    onReference({ path, kind: 'file', name: file });
    return content;
  } catch (error) {
    if (!(error instanceof SecretFileError)) throw error;
    errors.push({ path, message: error.message });
    return '';
  }
}

function toPath(ancestors: readonly unknown[], key: unknown): string {
  const names: string[] = [];
  for (const [depth, ancestor] of ancestors.entries()) {
    if (isPair(ancestor) && isScalar(ancestor.key)) names.push(String(ancestor.key.value));
    if (!isSeq(ancestor)) continue;
    const next = ancestors[depth + 1];
    names.push(String(next === undefined ? key : ancestor.items.indexOf(next)));
  }
  return names.join('.');
}

/**
 * The part of a document that a dotted path is about: the key of an option or the entry of a list, or the last one above
 * that there is. Null: not even its first name is there. A name may have dots itself.
 */
function findNode(document: Document, path: string): Node | null {
  let found: Node | null = null;
  let below: unknown = document.contents;
  let rest = path;
  while (rest !== '') {
    if (isAlias(below)) below = below.resolve(document);
    const step = isMap(below)
      ? stepIntoMap(below.items, rest)
      : isSeq(below)
        ? stepIntoList(below.items, rest)
        : null;
    if (!step) return found;
    found = step.at;
    below = step.below;
    rest = rest.slice(step.name.length + 1);
  }
  return found;
}

interface Step {
  readonly at: Node;
  readonly below: unknown;
  readonly name: string;
}

function stepIntoMap(pairs: readonly Pair[], path: string): Step | null {
  const steps = pairs.flatMap(({ key, value }): Step[] => {
    if (!isScalar(key)) return [];
    const name = String(key.value);
    return path === name || path.startsWith(`${name}.`) ? [{ at: key, below: value, name }] : [];
  });
  return steps.reduce<Step | null>(
    (longest, step) => (longest && longest.name.length >= step.name.length ? longest : step),
    null,
  );
}

function stepIntoList(items: readonly unknown[], path: string): Step | null {
  const name = path.split('.', 1)[0] ?? '';
  const item = /^\d+$/.test(name) ? items[Number(name)] : undefined;
  return item === undefined ? null : { at: item as Node, below: item, name };
}
