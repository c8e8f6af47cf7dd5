import type { ParseRow } from '#data';

const BYTES_SHOWN = 50;

const isText = (value: unknown): value is string => typeof value === 'string';
const isNumber = (value: unknown): value is number => typeof value === 'number';

type TypedValue = Readonly<Record<string, unknown>>;

/** Per Parse type its short form, or undefined when the value does not have the members of its type. */
const SHORT_FORMS = new Map<unknown, (value: TypedValue) => unknown>([
  ['Date', ({ iso }) => (isText(iso) ? iso : undefined)],
  [
    'Pointer',
    ({ className, objectId }) =>
      isText(className) && isText(objectId)
        ? { _type: 'Pointer', class: className, id: objectId }
        : undefined,
  ],
  [
    'File',
    ({ name, url }) => (isText(name) ? { _type: 'File', name, ...(isText(url) && { url }) } : undefined),
  ],
  [
    'GeoPoint',
    ({ latitude, longitude }) =>
      isNumber(latitude) && isNumber(longitude) ? { _type: 'GeoPoint', latitude, longitude } : undefined,
  ],
  [
    'Polygon',
    ({ coordinates }) =>
      Array.isArray(coordinates) ? { _type: 'Polygon', coordinates: simplify(coordinates) } : undefined,
  ],
  [
    'Bytes',
    ({ base64 }) =>
      isText(base64) ? { _type: 'Bytes', base64: `${base64.slice(0, BYTES_SHOWN)}...` } : undefined,
  ],
  ['Relation', ({ className }) => (isText(className) ? { _type: 'Relation', class: className } : undefined)],
]);

/**
 * A value in the short form agents read: typed values without their Parse envelope, `ACL` dropped at any depth. A value
 * that only claims a type is treated as an ordinary object.
 */
export function simplify(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(simplify);
  if (value === null || typeof value !== 'object') return value;
  const typed = value as TypedValue;
  const short = SHORT_FORMS.get(typed['__type'])?.(typed);
  return short === undefined ? simplifyRow(typed) : short;
}

export function simplifyRow(row: Readonly<ParseRow>): ParseRow {
  const simple: ParseRow = {};
  for (const key of Object.keys(row)) {
    if (key === 'ACL') continue;
    const value = simplify(row[key]);
    // As data the name is a plain member; assigning it would change the prototype.
    if (key === '__proto__') Object.defineProperty(simple, key, { value, enumerable: true });
    else simple[key] = value;
  }
  return simple;
}
