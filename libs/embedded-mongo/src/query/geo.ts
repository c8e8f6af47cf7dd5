import { type Document, firstKey, getField, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { type FieldPath, listValues } from '../bson/path.js';
import { printValue } from '../bson/text.js';
import { badValue, mongoError } from '../errors.js';
import {
  angle,
  isStrict,
  type Point,
  readGeometry,
  readPoint,
  readPosition,
  storedGeometry,
  toVector,
} from './geo-json.js';
import type { ValueTest } from './value-tests.js';

/** `$box`, `$center` and `$polygon` lie on a plane and hold points only; the others lie on the earth. */
function testShape(operator: string, name: string, argument: unknown): ValueTest {
  switch (name) {
    case '$box': {
      const [low, high] = corners(argument, 2);
      if (!low || !high) throw badValue('$box needs two corners');
      return onPlane(([x, y]) => between(x, low[0], high[0]) && between(y, low[1], high[1]));
    }
    case '$center': {
      const { center, radius } = circle(name, argument);
      return onPlane((point) => Math.hypot(point[0] - center[0], point[1] - center[1]) <= radius);
    }
    case '$polygon': {
      const ring = corners(argument, 3);
      return onPlane((point) => inRing(point, ring));
    }
    case '$centerSphere': {
      const { center, radius } = circle(name, argument);
      const middle = toVector(readPosition(center));
      return (value) => storedGeometry(value)?.isNear(middle, radius) === true;
    }
    case '$geometry':
      return onEarth(operator, argument);
    default:
      throw badValue(`unknown geo specifier: ${name}`);
  }
}

function onEarth(operator: string, argument: unknown): ValueTest {
  const type = isDocument(argument) ? getField(argument, 'type') : undefined;
  const wanted = readGeometry(argument);
  if (operator === '$geoIntersects') return (value) => storedGeometry(value)?.intersects(wanted) === true;
  if (type !== 'Polygon' && type !== 'MultiPolygon')
    throw badValue(`${operator} not supported with provided geometry: ${String(type)}`);
  return (value) => storedGeometry(value)?.within(wanted) === true;
}

const onPlane =
  (contains: (point: Point) => boolean): ValueTest =>
  (value) => {
    const point = readPoint(value);
    return point !== undefined && contains(point);
  };

function circle(name: string, argument: unknown): { center: Point; radius: number } {
  const parts = members(argument);
  const center = readCorner(parts[0]);
  const radius = toDouble(parts[1]);
  if (parts.length !== 2 || !center || !(radius >= 0))
    throw badValue(`${name} needs a center and a non-negative radius`);
  return { center, radius };
}

/** The members of a list or a document. */
const members = (value: unknown): unknown[] =>
  isDocument(value) ? Object.values(value) : Array.isArray(value) ? value : [];

/** A corner of a shape has two numbers, and nothing else. */
function readCorner(value: unknown): Point | undefined {
  const parts = members(value);
  const isPair = parts.length === 2 && parts.every((part) => numberKind(part) !== undefined);
  return isPair ? readPoint(parts) : undefined;
}

function corners(value: unknown, atLeast: number): Point[] {
  const found = members(value).map(readCorner);
  if (found.length < atLeast || found.includes(undefined))
    throw badValue(`Point must only contain numeric elements, and ${atLeast} points are needed`);
  return found as Point[];
}

const between = (value: number, a: number, b: number): boolean =>
  value >= Math.min(a, b) && value <= Math.max(a, b);

/** Counts the edges to the east of a point; corners and edges along an axis belong to the polygon, slanting ones may not. */
function inRing([x, y]: Point, ring: readonly Point[]): boolean {
  let inside = false;
  for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) {
    const [[ax, ay], [bx, by]] = [ring[j] as Point, ring[i] as Point];
    const along = (ax === bx || ay === by) && between(x, ax, bx) && between(y, ay, by);
    if (along || (x === bx && y === by)) return true;
    const level = y > Math.min(ay, by) && y <= Math.max(ay, by);
    if (level && x <= ((y - ay) * (bx - ax)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

/** The kinds of geo index. */
export type IndexKind = '2d' | '2dsphere';

/** A field and the geo index that it has. */
export interface GeoIndex {
  readonly path: string;
  readonly kind: IndexKind;
}

/** The kinds of index that can serve a distance. */
export const servingKinds = (spherical: boolean, metres: boolean): readonly IndexKind[] =>
  metres ? ['2dsphere'] : spherical ? ['2d', '2dsphere'] : ['2d'];

/** A `$near` or `$nearSphere` condition: the caller orders by `distance` and needs an index on `path`. */
export interface NearCondition {
  readonly path: string;
  /** The kinds of index that can serve it. */
  readonly kinds: readonly IndexKind[];
  /** In the unit of the query: metres for GeoJSON, radians for `$nearSphere` over pairs, else degrees. */
  readonly distance: (value: unknown) => number;
}

const earthRadius = 6378100;
const nearOperators = ['$near', '$nearSphere', '$geoNear'];
const nearOptions = ['$geometry', '$minDistance', '$maxDistance'];

/** `$geoWithin` and `$geoIntersects` over legacy pairs and GeoJSON. Errors: 2 for a malformed shape. */
export function geoWithinTest(operator: string, siblings: Document): ValueTest {
  const argument = getField(siblings, operator);
  if (!isDocument(argument)) throw badValue(`${operator} expects an object`);
  const other = [...Object.keys(siblings), ...Object.keys(argument).slice(1)].find((key) => key !== operator);
  if (other !== undefined) throw badValue(`can't parse extra field: ${other}`);
  const name = firstKey(argument);
  if (name === undefined) throw badValue(`${operator} expects a shape`);
  if (operator === '$geoIntersects' && name !== '$geometry')
    throw badValue('$geoIntersects requires $geometry');
  return testShape(operator, name, getField(argument, name));
}

/** Whether a location lies within the distances a `$near` condition allows. */
export function nearTest(condition: Document): ValueTest {
  const near = readNear(condition);
  return (value) => {
    const distance = near.distance(value);
    return distance <= near.max && distance >= near.min;
  };
}

/**
 * The `$near` condition of a filter, which the planner must serve through a geo index in that order. Errors: 2 for two of
 * them, and for one beside a text search or in a place that is no part of a conjunction.
 */
export function requiresGeoIndex(filter: Document): NearCondition | undefined {
  const found = listNear(filter);
  if (found.length > 1) throw badValue('Too many geoNear expressions');
  const [near] = found;
  if (near && Object.hasOwn(filter, '$text')) throw badValue('text and geoNear not allowed in same query');
  return near;
}

function listNear(filter: Document): NearCondition[] {
  return Object.keys(filter).flatMap((key) => {
    const argument = filter[key];
    if (Array.isArray(argument) && key.startsWith('$')) {
      const inner = argument.filter(isDocument).flatMap(listNear);
      if (inner.length > 0 && key !== '$and') throw badValue('geo $near must be top-level expr');
      return inner;
    }
    if (key.startsWith('$') || !isDocument(argument)) return [];
    const inner = ['$not', '$elemMatch'].map((name) => argument[name]).filter(isDocument);
    if (inner.some((part) => listNear({ field: part, ...part }).length > 0))
      throw badValue('geo $near must be top-level expr');
    if (!nearOperators.some((name) => Object.hasOwn(argument, name))) return [];
    return [{ path: key, ...readNear(argument) }];
  });
}

/** The refusal Parse Server understands and answers by creating the index. */
export const createMissingGeoIndex = (path: string): Error =>
  mongoError(291, `field=${path} unable to find index for $geoNear query`);

interface Near {
  readonly kinds: readonly IndexKind[];
  readonly min: number;
  readonly max: number;
  readonly distance: (value: unknown) => number;
}

function readNear(condition: Document): Near {
  const present = nearOperators.filter((operator) => Object.hasOwn(condition, operator));
  const name = present[0] as string;
  const other = Object.keys(condition).find(
    (key) => ![...present, '$minDistance', '$maxDistance', '$comment'].includes(key),
  );
  if (other !== undefined) throw mongoError(34413, `invalid argument in geo near query: ${other}`);
  if (present.length > 1) throw badValue(`invalid argument in geo near query: ${present[1]}`);
  const argument = getField(condition, name);
  const options = isDocument(argument) && firstKey(argument)?.startsWith('$') ? argument : undefined;
  const unknown = Object.keys(options ?? {}).find((key) => !nearOptions.includes(key));
  if (unknown !== undefined) throw badValue(`invalid argument in geo near query: ${unknown}`);
  const { center, metres } = readCenter(options ? getField(options, '$geometry') : argument, name);
  const spherical = name === '$nearSphere' || metres;
  const limit = (field: string, fallback: number): number => {
    const own = options && Object.hasOwn(options, field) ? options[field] : undefined;
    const positional =
      field === '$maxDistance' && Array.isArray(argument) ? (argument as unknown[])[2] : undefined;
    const beside = Object.hasOwn(condition, field) ? condition[field] : positional;
    const value = own === undefined ? beside : own;
    if (value === undefined) return fallback;
    if (numberKind(value) === undefined) throw badValue(`${field.slice(1)} must be a number`);
    const distance = toDouble(value);
    if (!(distance >= 0) || (metres && distance === Infinity))
      throw metres || field === '$maxDistance'
        ? badValue(`${field.slice(1)} must be non-negative`)
        : mongoError(16897, `${field.slice(1)} must be non-negative`);
    return distance;
  };
  return {
    kinds: servingKinds(spherical, metres),
    min: limit('$minDistance', 0),
    max: limit('$maxDistance', Infinity),
    distance: compileDistance(center, spherical, metres),
  };
}

/** Where distances are measured from: a GeoJSON point, in metres, or a pair. Errors: 2. */
export function readCenter(place: unknown, name: string): { center: Point; metres: boolean } {
  const coordinates = isDocument(place) ? getField(place, 'coordinates') : undefined;
  const metres = coordinates !== undefined;
  if (metres && ![undefined, 'Point'].includes(getField(place as Document, 'type') as string))
    throw badValue(`invalid point in geo near query: ${name} needs a point`);
  const center = metres ? readPosition(coordinates) : readPoint(place);
  if (!center || (name === '$geoNear' && Array.isArray(place) && place.length > 3))
    throw badValue(`invalid point in geo near query $geometry argument: ${name}`);
  return { center, metres };
}

/** The distance of a stored value; the nearest counts where a field holds several. NaN when it holds none. */
export function compileDistance(
  center: Point,
  spherical: boolean,
  metres: boolean,
): (value: unknown) => number {
  const from = toVector(spherical ? readPosition(center) : center);
  const measure = (value: unknown): number => {
    const point = readPoint(value);
    if (!spherical) return point ? Math.hypot(point[0] - center[0], point[1] - center[1]) : NaN;
    const distance = point ? angle(from, toVector(point)) : storedGeometry(value)?.distance(from);
    return distance === undefined ? NaN : distance * (metres ? earthRadius : 1);
  };
  return (value) => {
    const own = measure(value);
    if (!Number.isNaN(own) || !Array.isArray(value)) return own;
    const all = value.map(measure).filter((distance) => !Number.isNaN(distance));
    return all.length === 0 ? NaN : Math.min(...all);
  };
}

/** The limits of a plane index, which its definition may move. */
export type PlaneLimits = readonly [number, number];

/** Errors: 16755, 13026 and 13027 for values that a geo index has no place for. */
export function checkGeoKeys(
  document: Document,
  path: FieldPath,
  kind: IndexKind,
  limits: PlaneLimits,
): void {
  for (const value of listValues(document, path, 'whole')) {
    // Only a 2d index has a key for each point of an array.
    const isPlace = kind === '2dsphere' || readPoint(value) !== undefined || !Array.isArray(value);
    for (const one of isPlace ? [value] : (value as unknown[])) checkGeoKey(one, kind, limits);
  }
}

function checkGeoKey(value: unknown, kind: IndexKind, [low, high]: PlaneLimits): void {
  if (value === undefined || value === null) return;
  if (kind === '2d') {
    const point = readPoint(value);
    if (!point) throw mongoError(13026, `geo values must be 'legacy coordinate pairs' for 2d indexes`);
    if (point.some((part) => part < low || part > high))
      throw mongoError(13027, `point not in interval of [ ${low}, ${high} ]: ${printValue(value)}`);
    return;
  }
  const refuse = (reason: string): Error =>
    mongoError(16755, `Can't extract geo keys: ${printValue(value)} ${reason}`);
  if (!isDocument(value) && !Array.isArray(value)) throw refuse('geo element must be an array or object');
  try {
    readGeometry(value);
  } catch (error) {
    throw refuse((error as Error).message);
  }
  if (isDocument(value) && isStrict(value)) throw refuse('strict winding order is not for indexes');
}
