// Object literals that begin with a spread, for V8 11 (docs/contributing/decisions/0031-object-spread.md).
import { parseSync, Visitor } from 'rolldown/utils';

/** What the bundler writes above each module. A module is parsed for itself: most have no such literal. */
const MODULE = /^(?=\/\/(?:#region)? \S+$)/m;

/** @param {string} code of a bundle */
const withFastSpreads = (code) =>
  code
    .split(MODULE)
    .map((part) => (/\{\s*\.\.\./.test(part) ? withFastSpread(part) : part))
    .join('');

/**
 * `{ ...one, two }` becomes `{ ...null, ...one, two }`, which is the same object. No line changes its number.
 * @param {string} code
 */
export function withFastSpread(code) {
  const { program, errors } = parseSync('code.js', code);
  const [error] = errors;
  if (error) throw new Error(`tools/build/object-spread.mjs: ${error.message}`);
  /** @type {number[]} */
  const places = [];
  new Visitor({
    ObjectExpression({ properties }) {
      const [first] = properties;
      if (first?.type !== 'SpreadElement' || isNull(first.argument)) return;
      // V8 11 puts accessors of such a literal last; their order stays.
      if (properties.every((one) => one.type === 'SpreadElement' || one.kind === 'init'))
        places.push(first.start);
    },
  }).visit(program);
  places.sort((one, other) => one - other);
  return (
    places.map((place, at) => `${code.slice(places[at - 1] ?? 0, place)}...null, `).join('') +
    code.slice(places.at(-1) ?? 0)
  );
}

/** @param {import('rolldown/utils').ESTree.Expression} value */
const isNull = (value) => value.type === 'Literal' && value.raw === 'null';

/**
 * For all that a bundle contains: the driver makes its options in this way as well. Earlier, the bundler would remove it again.
 * @type {import('rolldown').Plugin}
 */
export const fastSpread = {
  name: 'fast-spread',
  generateBundle(_options, files) {
    for (const file of Object.values(files))
      if (file.type === 'chunk') file.code = withFastSpreads(file.code);
  },
};
