import type { Request } from './asked-service.js';
import { CLASS_NAMES, columnNames } from './vocabulary.js';

/** How often each kind of thing was made: `query_class where`, `$lookup`, `masks.form hash`. */
export type Kinds = ReadonlyMap<string, number>;

function counted(kinds: Iterable<string>): Kinds {
  const counts = new Map<string, number>();
  for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** Tools and methods, each of their arguments with the values of those that are a choice, and every operator. */
export function kindsOfRequests(requests: Iterable<Request>): Kinds {
  return counted([...requests].flatMap(kindsOf));
}

function kindsOf({ method, params }: Request): string[] {
  if (method !== 'tools/call') return [method];
  const tool = String(params['name']);
  const given = Object.entries(params['arguments'] as object);
  return [
    tool,
    ...given.map(([name]) => `${tool} ${name}`),
    ...given.filter(([name]) => name === 'format').map(([name, value]) => `${tool} ${name} ${value}`),
    ...operatorsIn(params),
  ];
}

function operatorsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(operatorsIn);
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, inner]) => [
    ...(key.startsWith('$') ? [key] : []),
    ...operatorsIn(inner),
  ]);
}

/** Where a request names one of the columns: the member or operator that stands around each mention, innermost first. */
export function placesOf(columns: readonly string[], requests: Iterable<Request>): Kinds {
  const names = new RegExp(`^\\$?-?(${columns.join('|')})(\\.|$)`);
  return counted([...requests].flatMap(({ params }) => placesIn(params, names, ['', ''])));
}

type Around = readonly [outer: string, inner: string];

function placesIn(value: unknown, names: RegExp, around: Around): string[] {
  const [outer, inner] = around;
  if (typeof value === 'string') return names.test(value) ? [inner, `${outer} ${inner}`] : [];
  if (Array.isArray(value)) return value.flatMap((one) => placesIn(one, names, around));
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, member]) =>
    names.test(key)
      ? [inner, ...Object.keys((member ?? {}) as object).map((operator) => `${inner} ${operator}`)]
      : placesIn(member, names, /^[xyabvw]$/.test(key) ? around : [inner, key]),
  );
}

const ENTRIES = new Set<string>([...CLASS_NAMES, ...CLASS_NAMES.flatMap(columnNames), 'createdAt']);
const CHOICE = /^(true|false|null|[a-z]+|[A-Z]+|exceptMaster)$/;

/** Every member of a world, classes and columns left out of its path, with its value where that is a choice. */
export function kindsOfWorlds(worlds: Iterable<unknown>): Kinds {
  return counted([...worlds].flatMap((world) => membersOf(world, '')));
}

function membersOf(value: unknown, path: string): string[] {
  if (Array.isArray(value))
    return [`${path} ${value.length > 0 ? 'some' : 'none'}`, ...value.flatMap((one) => membersOf(one, path))];
  if (value !== null && typeof value === 'object')
    return Object.entries(value).flatMap(([key, inner]) =>
      membersOf(inner, ENTRIES.has(key) ? path : `${path}.${key}`),
    );
  const text = String(value);
  return [`${path} ${CHOICE.test(text) ? text : 'value'}`];
}
