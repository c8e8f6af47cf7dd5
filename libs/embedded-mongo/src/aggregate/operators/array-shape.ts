import { mongoError } from '../../errors.js';
import { getField, isDocument, setField, type Document } from '../../bson/document.js';
import { typeName } from '../../bson/type-name.js';
import {
  intArgument,
  refuseOthers,
  requireArray,
  requireDocument,
  requireText,
  unaryOrNull,
  variadic,
  several,
} from '../arguments.js';
import { nullish, type OperatorCompiler, type OperatorTable } from '../evaluate.js';

/** As many elements as fit a document; repeated doubling must end before the memory does. */
const mostElements = 1_000_000;

const range = several(2, 3, ([first, last, by = 1], name) => {
  const start = intArgument(first, name, 34444, 'a starting value');
  const end = intArgument(last, name, 34446, 'an ending value');
  const step = intArgument(by, name, 34448, 'a step value');
  if (step === 0) throw mongoError(34449, `${name} requires a non-zero step value`);
  const length = Math.max(0, Math.ceil((end - start) / step));
  if (length > mostElements) throw mongoError(146, `${name} would build an array of ${length} elements`);
  return Array.from({ length }, (_, i) => start + i * step);
});

const zip: OperatorCompiler = (argument, builder, name) => {
  if (!isDocument(argument)) throw mongoError(34460, `${name} only supports an object as an argument`);
  const inputs = getField(argument, 'inputs');
  if (!Array.isArray(inputs) || inputs.length === 0)
    throw mongoError(34461, `inputs must be a non-empty array of expressions`);
  const lists = inputs.map((item) => builder.compile(item));
  refuseOthers(argument, ['inputs', 'useLongestLength', 'defaults'], name, 34464);
  const longest = getField(argument, 'useLongestLength') ?? false;
  if (typeof longest !== 'boolean') throw mongoError(34463, 'useLongestLength must be a bool');
  const given = getField(argument, 'defaults');
  if (given !== undefined && !longest)
    throw mongoError(34466, 'cannot specify defaults unless useLongestLength is true');
  if (given !== undefined && (!Array.isArray(given) || given.length !== inputs.length)) {
    throw mongoError(34467, 'defaults and inputs must have the same length');
  }
  const defaults = Array.isArray(given) ? given.map((item) => builder.compile(item)) : undefined;
  return (scope) => {
    const values = lists.map((list) => list(scope));
    if (values.some(nullish)) return null;
    const arrays = values.map((value) => requireArray(value, name, 34468));
    const lengths = arrays.map((items) => items.length);
    const length = longest ? Math.max(...lengths) : Math.min(...lengths);
    const fill = defaults?.map((item) => item(scope) ?? null);
    return Array.from({ length }, (_, i) =>
      arrays.map((items, k) => (i < items.length ? items[i] : (fill?.[k] ?? null))),
    );
  };
};

function readPair(item: unknown, name: string): [string, unknown] {
  if (Array.isArray(item)) {
    if (item.length !== 2) throw mongoError(40397, `${name} requires pairs, found ${item.length} values`);
    return [requireText(item[0], `A key of ${name}`, 40395), item[1]];
  }
  if (!isDocument(item))
    throw mongoError(40398, `Unrecognised input type format for ${name}: ${typeName(item)}`);
  if (Object.keys(item).length !== 2 || !Object.hasOwn(item, 'k') || !Object.hasOwn(item, 'v')) {
    throw mongoError(40393, `${name} requires an object with keys 'k' and 'v'. Missing either or both keys`);
  }
  return [requireText(item['k'], `A key of ${name}`, 40394), item['v']];
}

/** Operators that build arrays, or turn them into objects and back. */
export const arrayShapeOperators: OperatorTable = {
  $concatArrays: variadic((values, name) => {
    const result: unknown[] = [];
    for (const value of values) {
      if (nullish(value)) return null;
      const items = requireArray(value, name, 28664);
      if (result.length + items.length > mostElements) {
        throw mongoError(146, `${name} would build an array of over ${mostElements} elements`);
      }
      for (const item of items) result.push(item);
    }
    return result;
  }),
  $reverseArray: unaryOrNull((value, name) => requireArray(value, name, 34435).toReversed()),
  $range: range,
  $zip: zip,
  $arrayToObject: (argument, builder, name) => {
    // The argument may be the list of pairs itself, so only [[…]] with one inner list is unwrapped.
    const unwrap = Array.isArray(argument) && argument.length === 1;
    const input = builder.compile(unwrap ? argument[0] : argument);
    return (scope) => {
      const value = input(scope);
      if (nullish(value)) return null;
      const result: Document = {};
      for (const item of requireArray(value, name, 40386)) {
        const [key, field] = readPair(item, name);
        setField(result, key, field ?? null);
      }
      return result;
    };
  },
  $objectToArray: unaryOrNull((value, name) =>
    Object.entries(requireDocument(value, name, 40390)).map(([k, v]) => ({ k, v })),
  ),
};
