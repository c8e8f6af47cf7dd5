import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { runInThisContext } from 'node:vm';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));
let withFastSpread: (code: string) => string;
beforeAll(async () => {
  const path = join(root, 'tools/build/object-spread.mjs');
  ({ withFastSpread } = (await import(pathToFileURL(path).href)) as {
    withFastSpread: typeof withFastSpread;
  });
});

const SCOPE = `
  const empty = {}, none = null, missing = undefined, text = 'ab', list = [1, 2], yes = true, no = false;
  const one = { a: 1, b: 2 }, two = { b: 3, a: 4, 7: 5 }, bare = Object.assign(Object.create(null), { c: 6 });
  const own = JSON.parse('{ "__proto__": { "a": 8 }, "constructor": 9 }');
  const lazy = { get a() { return 10; }, get [Symbol.iterator]() { return 11; } };
  const inherits = Object.create(one, { d: { value: 12, enumerable: true }, e: { value: 13 } });
`;
const spread = fc.constantFrom(
  'empty',
  'none',
  'missing',
  'text',
  'list',
  'one',
  'two',
  'bare',
  'own',
  'lazy',
  'inherits',
  '(yes && one)',
  '(no && two)',
  '{ ...two, z: 1 }',
  '[...list]',
);
const member = fc.oneof(
  spread.map((name) => `...${name}`),
  fc.constantFrom('a: 20', '"b": 21', '["c"]: 22', 'one', 'get d() { return 23; }', 'set e(value) {}'),
  fc.constantFrom(
    'f() {}',
    '__proto__: one',
    '["__proto__"]: 24',
    '...{ ...one }',
    '...(() => ({ ...two }))()',
  ),
);
const written = (one: string) => (one.startsWith('...') ? Symbol() : one);
const literal = fc
  // No linter lets one key be written twice.
  .tuple(spread, fc.uniqueArray(member, { maxLength: 4, selector: written }))
  .map(([first, others]) => `({ ...${[first, ...others].join(', ')} })`);

/** Everything that tells an object from another. */
function described(code: string): unknown {
  const [made, one] = runInThisContext(`(() => { ${SCOPE} return [${code}, one]; })()`) as [object, object];
  const prototype: unknown = Object.getPrototypeOf(made);
  return {
    prototype: prototype === Object.prototype ? 'Object' : prototype === one ? 'one' : prototype,
    members: Reflect.ownKeys(made).map((key) => {
      const { value: held, get, set, ...flags } = Object.getOwnPropertyDescriptor(made, key) ?? {};
      return [key, typeof held === 'function' ? 'function' : held, typeof get, typeof set, flags];
    }),
  };
}

describe('an object literal that begins with a spread', () => {
  it('is never another object than the one that was written', () => {
    let changed = 0;
    fc.assert(
      fc.property(literal, (code) => {
        const built = withFastSpread(code);
        if (built.includes('...null, ')) changed += 1;
        expect(described(built)).toEqual(described(code));
        expect(withFastSpread(built)).toBe(built);
      }),
      { numRuns: 1_000 },
    );
    expect(changed).toBeGreaterThan(500);
  });

  it('keeps its lines', () => {
    expect(withFastSpread('f({\n  ...a,\n  b: { ...c },\n});\n')).toBe(
      'f({\n  ...null, ...a,\n  b: { ...null, ...c },\n});\n',
    );
  });

  it.each([
    'const { ...rest } = a;',
    'const { b, ...rest } = a;',
    'f(...a, [...a], { b, ...a });',
    'const text = "{ ...a }" + `{ ...a }` + /{ ...a }/.source; // { ...a }',
    '({ ...null, ...a });',
    '({ ...a, get b() { return 1; } });',
  ])('is the only place that changes: %s', (code) => {
    expect(withFastSpread(code)).toBe(code);
  });

  it('makes objects of one hidden class', () => {
    const made = withFastSpread('const made = (given) => ({ ...given, c: 3 });');
    const warm = 'for (let n = 0; n < 10; n += 1) made({ a: 1, b: 2 });';
    const compared = '%HaveSameMap(made({ a: 1, b: 2 }), made({ a: 4, b: 5 }))';
    const program = `${made} ${warm} process.exitCode = ${compared} ? 0 : 3;`;
    const { status } = spawnSync(process.execPath, ['--allow-natives-syntax', '-e', program]);
    expect(status).toBe(0);
  });

  it('is so in every built file', () => {
    const folder = join(root, 'dist/bundle');
    const files = readdirSync(folder).filter((name) => /\.c?js$/.test(name));
    expect(files).toEqual(expect.arrayContaining(['programs.cjs', 'parley.js', 'parley.cjs']));
    const left = files.filter((name) => {
      const text = readFileSync(join(folder, name), 'utf8');
      return withFastSpread(text) !== text;
    });
    expect(left).toEqual([]);
  });
});
