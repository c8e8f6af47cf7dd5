import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { runInThisContext } from 'node:vm';
import { beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));

interface Judged {
  readonly outcome: string;
  readonly fault: string | null;
}

interface Judge {
  shownIn(text: string, request: string): string | null;
  judgeReply(reply: unknown, request: string): Judged;
  judgeLoad(thrown: unknown, text: string): Judged;
}

let judge: Judge;
beforeAll(async () => {
  const path = join(root, 'test', 'proof', 'support', 'fuzz-judge.mjs');
  judge = (await import(pathToFileURL(path).href)) as Judge;
});

const STACK = 'query failed\n    at Object.run (/srv/app/dispatch.js:12:7)';

/** What an answer must not say, and something like it that it may. */
const LEAKS: readonly (readonly [what: string, leak: string, harmless: string])[] = [
  ['a line of a stack', STACK, 'look at line 12:7'],
  ['the address of a module', 'file:///srv/app/main.js', 'a file:// address'],
  ['an installed package', 'in node_modules/mongodb', 'in a module of node'],
  ['a module of Node', 'node:internal/process', 'internal nodes'],
  ['the class of an error of JavaScript', 'TypeError: no', 'an error of type: no'],
  ['the class of an error of the driver', 'MongoServerError: no', 'an error of MongoDB'],
  ['the class of an error of BSON', 'BSONVersionError: no', 'BSON'],
  ['an internal column', '{"_hashed_password":"$2b$10$"}', '{"hashed_password":"x"}'],
  ['the folder of the program', join(root, 'dist', 'main.js'), '/srv/other/dist/main.js'],
];

/** Mistakes in a program, as this Node words them, and words of a refusal that are like them. */
const MISTAKES: readonly (readonly [code: string, harmless: string])[] = [
  ['undefined.id', 'Objects of undefined, as the agent sees them.'],
  ['null.id = 1', 'Set the property id, not null'],
  ['class A { #b; static c = (a) => a.#b } A.c({})', 'Cannot read a private class'],
  ['const { id } = null', 'The property id is null'],
  ['Object.keys(null)', 'Write an object, not null'],
  ['Number.isNaN(1 + 1n)', 'Do not mix types'],
  ['Math.max(1n)', 'Cannot convert this value'],
  ['`${Symbol()}`', 'A symbol cannot be converted'],
  ["'a' in 'x'", "Cannot use '$in' there"],
  ['a; let a', 'Cannot access a'],
  ['Object.freeze({ a: 1 }).a = 2', 'The field a is read only'],
  ["Object.defineProperty(Object.freeze([1]), '0', { value: 2 })", 'The field 0 is defined already'],
  ['(class Agent {})()', 'Class Agent cannot be read'],
  ['const a = []; a.push(a); JSON.stringify(a)', 'The structure is circular'],
  ['(function again() { again() })()', 'The maximum depth is 20'],
  ['[].reduce(Math.max)', 'The argument to $reduce must be an array'],
  ['new Array(-1)', 'The array is too long'],
  ["'x'.repeat(2 ** 30)", 'The text is too long'],
  ['new Date(NaN).toISOString()', 'The time is not valid'],
  ['({}).map()', 'map is not one of the functions'],
  ['new (() => {})()', 'constructor is not a field'],
  ['const [a] = 1', '1 is not a list'],
];

const messageOf = (code: string): string => {
  try {
    runInThisContext(`'use strict'; { ${code} }`);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error(`nothing is wrong with ${code}`);
};

describe('the judge of fuzzed cases', () => {
  describe.each([
    ...LEAKS,
    ...MISTAKES.map(([code, harmless]) => [`what fails in ${code}`, messageOf(code), harmless] as const),
  ])('finds %s', (_what, leak, harmless) => {
    it('in an answer, and in JSON of an answer', () => {
      expect(judge.shownIn(leak, '{}')).toMatch(/^shows something internal/);
      const inText = { result: { content: [{ type: 'text', text: JSON.stringify({ message: leak }) }] } };
      expect(judge.judgeReply(inText, '{}').fault).toMatch(/^shows something internal/);
    });

    it('never in words that are like it', () => {
      expect(judge.shownIn(harmless, '{}')).toBeNull();
    });

    it('never where the caller said the same', () => {
      expect(judge.shownIn(leak, JSON.stringify({ params: leak }))).toBeNull();
    });
  });

  it('does not excuse a column by another one that the caller named', () => {
    const answer = '{"_rperm":[],"_session_token":"r:1"}';
    expect(judge.shownIn(answer, '{"where":{"_rperm":1}}')).toBe('shows something internal: _session_token');
  });

  it('finds the value that no agent may see', () => {
    expect(judge.shownIn('a zzCANARYzz note', '{}')).toBe('shows a value that no agent may see');
  });

  it('does not take a class of the name undefined for an error', () => {
    const resources = [{ uri: 'parse://schema/undefined', description: 'Fields of undefined' }];
    expect(judge.judgeReply({ result: { resources } }, '{}')).toEqual({ outcome: 'ok', fault: null });
  });

  describe('of a configuration', () => {
    const refused = (message: string) => ({
      error: { issues: [{ path: 'policy', message }] },
      isConfigError: true,
    });
    const message = 'there is no option "_hashed_password"';

    it('lets an error repeat a key of the file', () => {
      const judged = judge.judgeLoad(refused(message), 'policy:\n  _hashed_password: 1\n');
      expect(judged).toEqual({ outcome: 'refused at a path', fault: null });
    });

    it('finds a name that the file does not hold', () => {
      const judged = judge.judgeLoad(refused(message), 'policy:\n  password: 1\n');
      expect(judged.fault).toBe('shows something internal: _hashed_password');
    });

    it('finds an error that is none of the configuration', () => {
      const judged = judge.judgeLoad({ error: new Error('no'), isConfigError: false }, '');
      expect(judged.fault).toMatch(/^another error than ConfigError/);
    });
  });
});
