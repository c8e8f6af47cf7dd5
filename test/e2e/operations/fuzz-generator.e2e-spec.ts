import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const load = (path: string): Promise<unknown> => import(pathToFileURL(join(root, path)).href);

interface Frame {
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}
interface Modules {
  readonly SeededRandom: new (...words: unknown[]) => object;
  readonly FuzzInputs: new (tools: object[], seed: object, operators: object) => object;
  readonly httpFrame: (random: object, inputs: object, number: number, keys: string[]) => Frame;
  readonly takenFrom: (request: string, answer: string, judged: { outcome: string }) => string | null;
  readonly configurationCases: (texts: string[]) => (random: object) => { text: string };
  readonly readJson: (text: string) => { ok: boolean; fault?: string };
}

const FRAMES = 6_000;
const TOOL = {
  name: 'query_class',
  inputSchema: { properties: { class_name: {}, where: {}, pipeline: {} }, required: ['class_name'] },
};
const SEED = {
  schemas: [{ className: 'Listing', fields: { title: { type: 'String' }, likes: { type: 'Number' } } }],
  objects: { Listing: [{ objectId: 'p1', title: 'One', likes: 3 }] },
};
const OPERATORS = { stages: ['$match', '$limit'], match: ['$gt'], total: ['$add'], partial: ['$divide'] };

let modules: Modules;
let frames: readonly Frame[];
let texts: readonly string[];
beforeAll(async () => {
  const parts = await Promise.all(
    ['seeded-random', 'fuzz-inputs', 'fuzz-frames', 'fuzz-judge', 'fuzz-configurations']
      .map((name) => `test/proof/support/${name}.mjs`)
      .concat('dist/libs/core/src/read-json.js')
      .map(load),
  );
  modules = Object.assign({}, ...(parts as object[])) as Modules;
  const { SeededRandom, FuzzInputs, httpFrame } = modules;
  const inputs = new FuzzInputs([TOOL], SEED, OPERATORS);
  frames = Array.from({ length: FRAMES }, (_, number) =>
    httpFrame(new SeededRandom(7, 'http', number), inputs, number, ['key']),
  );
  texts = frames.map(({ body }) => Buffer.from(body, 'base64').toString('utf8'));
});

const faultsOf = (fault: string) => texts.filter((text) => modules.readJson(text).fault === fault);

describe('the generator of fuzzed frames', () => {
  it('makes objects of many members, long lists and long texts', () => {
    const large = texts.filter((text) => text.length > 10_000);
    const holds = (isHeld: (text: string) => boolean) => expect(large.some(isHeld)).toBe(true);
    holds((text) => text.includes('3999":'));
    holds((text) => text.split(',').length > 3_900 && !text.includes('3999":'));
    holds((text) => text.split('"').some((part) => part.length >= 3_990 && part.startsWith(part.slice(-8))));
  });

  it('makes numbers that readers round, in arguments as well as in ids', () => {
    const rounded = faultsOf('number');
    expect(rounded.length).toBeGreaterThan(FRAMES / 100);
    const large = '(?:-?\\d{16,}|-?1e\\d{3})';
    const inId = rounded.filter((text) => new RegExp(`"id":${large}`).test(text)).length;
    const inArguments = rounded.filter((text) => new RegExp(`"arguments":.*${large}`).test(text)).length;
    expect(Math.min(inId, inArguments)).toBeGreaterThan(3);
  });

  it('makes members that an object has twice, also under two spellings', () => {
    const repeated = faultsOf('repeated');
    expect(repeated.length).toBeGreaterThan(FRAMES / 100);
    expect(repeated.filter((text) => /"\\u00[\da-f]{2}\w+":/.test(text)).length).toBeGreaterThan(3);
  });

  it('makes byte order marks before whole messages', () => {
    const marked = texts.filter((text) => text.startsWith('\u{feff}') && modules.readJson(text).ok);
    expect(marked.length).toBeGreaterThan(FRAMES / 200);
  });

  it('makes requests of more than a thousand headers', () => {
    expect(frames.filter(({ headers }) => headers.length > 1_000).length).toBeGreaterThan(FRAMES / 500);
  });

  it.each(['$oid', '$date', '$numberLong', '$numberDecimal', '$numberInt', '$uuid', '$regularExpression'])(
    'makes extended JSON with %s',
    (name) => {
      expect(texts.filter((text) => text.includes(`{"${name}":`)).length).toBeGreaterThan(5);
    },
  );

  it('makes numbers and byte order marks in configurations', () => {
    const make = modules.configurationCases(['server:\n  port: 3001\n  maxBodySize: 1000\n']);
    const made = Array.from(
      { length: 3_000 },
      (_, number) => make(new modules.SeededRandom(7, 'c', number)).text,
    );
    expect(made.filter((text) => text.includes(': 9007199254740993\n')).length).toBeGreaterThan(5);
    expect(made.filter((text) => text.startsWith('\u{feff}server')).length).toBeGreaterThan(5);
  });
});

describe('the judge of fuzzed frames', () => {
  it('knows every text of which a result would be a loss, as the reader does', () => {
    for (const text of texts) {
      const { fault } = modules.readJson(text);
      const isMessage = /^\u{feff}?\{/u.test(text) && fault !== 'syntax' && fault !== 'depth';
      const loss = modules.takenFrom(text, '', { outcome: 'ok' });
      expect({ text, isLoss: loss !== null }).toEqual({
        text,
        isLoss: isMessage && (fault === 'repeated' || fault === 'number'),
      });
    }
  });

  it.each([
    ['{"id":1,"params":{"a":9007199254740993}}', '{"id":1}', 'a number that readers round was taken'],
    ['{"id":9007199254740993}', '{"id":9007199254740992}', 'an id was answered with other digits'],
    ['{"id":9007199254740993}', '{"id":9007199254740993}', null],
    ['{"id":1,"a":1,"\\u0061":1}', '{"id":1}', 'a member that was given twice was taken'],
    ['{"id":1,"a":"9007199254740993"}', '{"id":1}', null],
  ])('says of the result for %s: %s is %s', (request, answer, loss) => {
    expect(modules.takenFrom(request, answer, { outcome: 'ok' })).toBe(loss);
  });

  it('finds a byte order mark that was taken for a part of the text', () => {
    const judged = { outcome: 'protocol -32700' };
    const answer = 'Parse error: invalid JSON';
    expect(modules.takenFrom('\u{feff}{"id":1}', answer, judged)).toMatch(/^a byte order mark/);
    expect(modules.takenFrom('{"id":1}', answer, judged)).toBeNull();
  });
});
