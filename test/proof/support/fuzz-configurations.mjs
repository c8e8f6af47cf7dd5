import { parse, stringify } from 'yaml';
import { edgeName, edgeText, mutated, mutatedText } from './seeded-random.mjs';

/* Configuration files: those of the project and of its pages, mutated as values and as text. */

const ODD_LINES = [
  '<<: *nothing',
  '&a [*a]',
  'a: &x {b: 1}\nc: *x',
  '!!js/function x',
  '!!binary AAAA',
  '? [a, b]\n: c',
  '---',
  '...',
  '%YAML 3.0',
  '\t- x',
  '- x',
  '}',
  '{',
  '"',
  "'",
  '@x',
  '`x`',
  'server: null',
  'server: []',
  'policy: 1',
  'agents: {}',
  'auth: {}',
  '__proto__: {permissions: admin}',
  'constructor: 1',
  'a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]',
  'server: {port: ${PORT}}',
  'parse: {masterKey: ${NOTHING}}',
  'x: |\n  y',
  '\u0000',
  '\uFEFF',
];

const LAUGHS = `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'
  .split('')
  .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[index]}`).join(',')}]`)
  .join('\n')}\n`;

/** @param texts YAML files without a mistake */
export function configurationCases(texts) {
  const values = texts.map((text) => parse(text));
  return (random) => {
    const at = random.below(texts.length);
    const text = random.weighted(
      [6, () => stringify(mutated(random, values[at], 1 + random.below(3)))],
      [2, () => stringify({ ...values[at], ...values[random.below(values.length)] })],
      [5, () => lines(random, texts[at])],
      [2, () => characters(random, texts[at])],
      [0.2, () => `${texts[at]}\n${LAUGHS}`],
      [0.2, () => `\uFEFF${texts[at]}`],
      [
        0.3,
        () =>
          random.pick([
            '',
            ' ',
            'null',
            '1',
            'x',
            '[]',
            '{}',
            '---\n---\n',
            '{"a":1}',
            edgeText(random),
            LAUGHS,
          ]),
      ],
    );
    return { text };
  };
}

function lines(random, text) {
  const all = [...text.split('\n'), ''];
  for (let times = 1 + random.below(3); times > 0 && all.length > 0; times -= 1) {
    const at = random.below(all.length);
    random.weighted(
      [2, () => all.splice(at, 1)],
      [1, () => all.splice(at, 0, all[random.below(all.length)])],
      [2, () => (all[at] = ' '.repeat(random.below(5)) + all[at])],
      [1, () => (all[at] = all[at].replace(/^ +/, ''))],
      [2, () => all.splice(at, 0, ' '.repeat(2 * random.below(3)) + random.pick(ODD_LINES))],
      [
        2,
        () =>
          (all[at] = all[at].replace(
            /:.*$/,
            `: ${random.pick([edgeText(random), edgeName(random), '[]', '{}', '-1', '9007199254740993', '~', '*a', '&a 1', '!!int x'])}`,
          )),
      ],
      [1, () => (all[at] = mutatedText(random, all[at]))],
    );
  }
  return all.join('\n');
}

function characters(random, text) {
  let changed = text;
  for (let times = 1 + random.below(5); times > 0; times -= 1)
    changed = mutatedText(random, changed.slice(0, 20_000));
  return changed;
}
