/** Random numbers that a seed and any words repeat. */
export class SeededRandom {
  #state;

  constructor(...words) {
    let hash = 2_166_136_261;
    for (const character of words.join(' '))
      hash = Math.imul(hash ^ Number(character.codePointAt(0)), 16_777_619);
    this.#state = hash >>> 0;
  }

  /** From 0 to 1. */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from 0 up to, without, the bound. */
  below(bound) {
    return Math.floor(this.next() * bound);
  }

  chance(share) {
    return this.next() < share;
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  /** @param choices pairs of a weight and a function that makes the value */
  weighted(...choices) {
    let left = this.next() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, make] of choices) {
      left -= weight;
      if (left < 0) return make();
    }
    return choices.at(-1)[1]();
  }

  list(longest, make) {
    return Array.from({ length: this.below(longest + 1) }, make);
  }

  /** Several of the list, each once, in another order. */
  some(list, most) {
    const rest = [...list];
    const count = 1 + this.below(Math.min(most, rest.length));
    return Array.from({ length: count }, () => rest.splice(this.below(rest.length), 1)[0]);
  }
}

const NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'valueOf',
  'length',
  '',
  ' ',
  '.',
  '$',
  'a.b',
  '$where',
  '$expr',
  '_id',
  '_p_artist',
  '_rperm',
  '_hashed_password',
  'sessionToken',
  'ACL',
  '__op',
  '__type',
  'objectId',
  'authData',
  'masterKey',
  'x'.repeat(300),
  'ñame',
  '\u0000',
  'a\u202Eb',
  '😀',
  '0',
  '-1',
];

const TEXTS = [
  '',
  ' ',
  'vinyl',
  'jazz',
  'null',
  'undefined',
  'NaN',
  '0',
  '-1',
  '1e400',
  'true',
  '\u0000',
  '\uFEFF',
  '\uD800',
  '😀'.repeat(50),
  'x'.repeat(5_000),
  "'; drop table x; --",
  '<script>alert(1)</script>',
  '{{7*7}}',
  '${7*7}',
  '%00',
  '../../etc/passwd',
  'CON',
  '(a+)+$',
  '^(\\w+\\s?)*$',
  '[',
  '(?<n>a)\\k<n>',
  '\\',
  '^',
  'a{1,99999}',
  '(?=.*a)(?=.*b)',
  '\\p{L}',
  '(?i)a',
  '\u001b[31m',
  'a\r\nb: c',
  '2026-01-01',
  '2026-02-30',
  '2026-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999Z',
  '-271821-04-20',
  'now',
  'today',
  '7 days ago',
  'in 3 weeks',
  '-1d',
  'Europe/Vienna',
  'Mars/Olympus',
  '+25:00',
  '000000000000000000000000',
  'r:demo-admin',
  'ISODate("2026-01-01")',
];

const NUMBERS = [
  0,
  -0,
  1,
  -1,
  2,
  3,
  5,
  10,
  50,
  100,
  999,
  1_000,
  1_001,
  1e6,
  0.1,
  -0.5,
  1e21,
  1e308,
  -1e308,
  5e-324,
  2 ** 31,
  2 ** 31 - 1,
  -(2 ** 31) - 1,
  2 ** 53,
  2 ** 53 - 1,
  -(2 ** 53),
  2 ** 63,
  2 ** 64,
];

export const edgeName = (random) => random.pick(NAMES);
export const edgeText = (random) => random.pick(TEXTS);
export const edgeNumber = (random) => random.pick(NUMBERS);

/** Whole numbers that a double does not hold, as JSON writes them. */
const LARGE_LITERALS = [
  '9007199254740993',
  '-9007199254740993',
  '9223372036854775807',
  '-9223372036854775807',
  '1234567890123456789',
  '18446744073709551615',
  `1${'0'.repeat(400)}`,
  '1e400',
  '-1e999',
];

export const largeLiteral = (random) => random.pick(LARGE_LITERALS);

/** A value as MongoDB's Extended JSON writes it. */
export function extendedJson(random) {
  return random.weighted(
    [1, () => ({ $oid: random.pick(['64b5f0a1c2d3e4f5a6b7c8d9', edgeText(random)]) })],
    [
      1,
      () => ({
        $date: random.pick([
          '2026-01-01T00:00:00Z',
          1.7e12,
          { $numberLong: '1700000000000' },
          edgeText(random),
        ]),
      }),
    ],
    [1, () => ({ $numberLong: random.pick(['9007199254740993', edgeText(random)]) })],
    [1, () => ({ $numberDecimal: random.pick(['0.1', 'Infinity', edgeText(random)]) })],
    [1, () => ({ $numberInt: random.pick(['7', edgeText(random)]) })],
    [1, () => ({ $numberDouble: random.pick(['1.5', 'NaN', '-Infinity', edgeText(random)]) })],
    [1, () => ({ $uuid: random.pick(['0f8fad5b-d9cb-469f-a165-70867728950e', edgeText(random)]) })],
    [
      1,
      () => ({
        $regularExpression: { pattern: edgeText(random), options: random.pick(['', 'i', edgeText(random)]) },
      }),
    ],
    [0.5, () => ({ $binary: { base64: 'AAAA', subType: '04' } })],
    [0.5, () => ({ $timestamp: { t: 1, i: edgeNumber(random) } })],
    [
      0.5,
      () =>
        random.pick([{ $minKey: 1 }, { $maxKey: 1 }, { $undefined: true }, { $code: 'x' }, { $symbol: 'x' }]),
    ],
    [0.5, () => ({ $dbPointer: { $ref: 'users', $id: { $oid: '64b5f0a1c2d3e4f5a6b7c8d9' } } })],
  );
}

/** Any JSON value; most are small. */
export function anyValue(random, depth = 3) {
  return random.weighted(
    [4, () => edgeText(random)],
    [4, () => edgeNumber(random)],
    [2, () => random.chance(0.5)],
    [2, () => null],
    [1, () => extendedJson(random)],
    [depth > 0 ? 2 : 0, () => random.list(4, () => anyValue(random, depth - 1))],
    [
      depth > 0 ? 3 : 0,
      () => objectOf(random.list(4, () => [edgeName(random), anyValue(random, depth - 1)])),
    ],
    [depth > 0 ? 1 : 0, () => nested(random, 1 + random.below(40))],
  );
}

/** Members are defined, so that `__proto__` is one like any other. */
export function objectOf(entries) {
  const object = {};
  for (const [name, value] of entries) define(object, name, value);
  return object;
}

export const define = (object, name, value) =>
  Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true });

function nested(random, depth) {
  let value = random.pick([1, null, 'x', {}]);
  const name = random.pick(['$and', '$or', 'a', '$not', '$nor', '__proto__']);
  for (let at = 0; at < depth; at += 1)
    value = name === '$and' || name === '$or' ? { [name]: [value] } : objectOf([[name, value]]);
  return value;
}

/** Every place of a value: its container, its key, and how deep it stands. */
export function placesOf(value, depth = 0) {
  if (value === null || typeof value !== 'object' || depth > 60) return [];
  return Object.keys(value).flatMap((key) => [{ container: value, key }, ...placesOf(value[key], depth + 1)]);
}

/** Changes the value at a few places. @param isSwollen whether objects, lists and texts may become large */
export function mutated(random, given, times = 1, isSwollen = false) {
  const value = structuredClone({ given });
  for (let time = 0; time < times; time += 1) {
    const places = placesOf(value.given);
    if (places.length === 0) return anyValue(random);
    const { container, key } = random.pick(places);
    const other = random.pick(places);
    random.weighted(
      [4, () => define(container, key, anyValue(random, 2))],
      [2, () => (Array.isArray(container) ? container.splice(Number(key), 1) : delete container[key])],
      [
        2,
        () =>
          define(
            container,
            Array.isArray(container) ? container.length : edgeName(random),
            anyValue(random, 2),
          ),
      ],
      [2, () => renamed(container, key, random)],
      [1, () => define(container, key, structuredClone(other.container[other.key]))],
      [1, () => define(container, key, [container[key]])],
      [isSwollen ? 0.3 : 0, () => define(container, key, swollen(random, container[key]))],
      [1, () => define(container, key, objectOf([[edgeName(random), container[key]]]))],
      [
        1,
        () =>
          typeof container[key] === 'string' && define(container, key, mutatedText(random, container[key])),
      ],
      [
        1,
        () =>
          typeof container[key] === 'number' &&
          define(container, key, container[key] * random.pick([-1, 1e9, 0.3, 0])),
      ],
    );
  }
  return value.given;
}

/** Times that a part of a value is repeated: what costs its square shows by then. */
const REPEATED = 4_000;
/** Characters of a part that is repeated. */
const SMALL = 64;

function swollen(random, value) {
  if (typeof value === 'string') return value.slice(0, 8).repeat(REPEATED);
  if (value === null || typeof value !== 'object') return value;
  const [[name, member] = ['a', random.pick([1, '$title', { $sum: 1 }])]] = Object.entries(value);
  if (name.length > SMALL || (JSON.stringify(member)?.length ?? 0) > SMALL) return value;
  if (Array.isArray(value)) return Array.from({ length: REPEATED }, () => member);
  return objectOf([
    ...Object.entries(value),
    ...Array.from({ length: REPEATED }, (_, at) => [`${name}${at}`, member]),
  ]);
}

function renamed(container, key, random) {
  if (Array.isArray(container)) return;
  const value = container[key];
  delete container[key];
  define(container, random.chance(0.5) ? mutatedText(random, key) : edgeName(random), value);
}

export function mutatedText(random, text) {
  const at = random.below(text.length + 1);
  return random.weighted(
    [2, () => text.slice(0, at) + text.slice(at + 1)],
    [
      2,
      () =>
        text.slice(0, at) +
        random.pick(['$', '.', '_', '\u0000', ' ', 'é', '"', '\\', '0', '\n']) +
        text.slice(at),
    ],
    [1, () => text.toUpperCase()],
    [1, () => text + text],
    [1, () => text.slice(at)],
  );
}
