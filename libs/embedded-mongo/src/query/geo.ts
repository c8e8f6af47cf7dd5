import { badValue, mongoError } from '../errors.js';
import { firstKey, getField, isDocument, type Document } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { compileShape, distanceOnSphere, readPoint, shapeWithin, type Point } from './geo-shape.js';
import type { ValueTest } from './value-tests.js';

/** A `$near` or `$nearSphere` condition: the caller orders by `distance` and needs an index on `path`. */
interface NearCondition {
  readonly path: string;
  /** In the unit of the query: metres for GeoJSON, radians for `$nearSphere` over pairs, else degrees. */
  readonly distance: (value: unknown) => number;
}

const earthRadius = 6378100;
const nearOperators = ['$near', '$nearSphere', '$geoNear'] as const;

/** `$geoWithin` and `$geoIntersects` over legacy pairs and GeoJSON. Errors: 2 for a malformed shape. */
export function geoWithinTest(operator: string, argument: unknown): ValueTest {
  if (!isDocument(argument)) throw badValue(`${operator} expects an object`);
  const name = firstKey(argument);
  if (name === undefined) throw badValue(`${operator} expects a shape`);
  if (operator === '$geoIntersects' && name !== '$geometry')
    throw badValue('$geoIntersects requires $geometry');
  const shape = compileShape(name, getField(argument, name));
  return (value) => shapeWithin(value, shape, operator === '$geoIntersects');
}

/** Whether a location lies within the distances a `$near` condition allows. */
export function nearTest(condition: Document): ValueTest {
  const near = readNear(condition);
  return (value) => {
    const distance = near.distance(value);
    return distance <= near.max && distance >= near.min;
  };
}

/** The `$near` condition of a filter, which the planner must serve through a geo index in that order. */
export function requiresGeoIndex(filter: Document): NearCondition | undefined {
  for (const key of Object.keys(filter)) {
    const argument = filter[key];
    if (key === '$and' && Array.isArray(argument)) {
      for (const part of argument) {
        const found = isDocument(part) ? requiresGeoIndex(part) : undefined;
        if (found) return found;
      }
    } else if (!key.startsWith('$') && isDocument(argument)) {
      if (nearOperators.some((name) => Object.hasOwn(argument, name))) {
        return { path: key, distance: readNear(argument).distance };
      }
    }
  }
  return undefined;
}

/** The refusal Parse Server understands and answers by creating the index. */
export const createMissingGeoIndex = (path: string): Error =>
  mongoError(
    291,
    `error processing query: field=${path} :: caused by :: unable to find index for $geoNear query`,
  );

interface Near {
  readonly min: number;
  readonly max: number;
  readonly distance: (value: unknown) => number;
}

function readNear(condition: Document): Near {
  const name = nearOperators.find((operator) => Object.hasOwn(condition, operator)) as string;
  const argument = getField(condition, name);
  const geometry = isDocument(argument) ? getField(argument, '$geometry') : undefined;
  const center = readPoint(geometry ?? argument);
  if (!center) throw badValue(`invalid point in geo near query $geometry argument: ${name}`);
  const spherical = name === '$nearSphere' || geometry !== undefined;
  const metres = geometry !== undefined;
  const limit = (field: string, fallback: number): number => {
    const nested = isDocument(argument) ? getField(argument, field) : undefined;
    const positional =
      field === '$maxDistance' && Array.isArray(argument) ? (argument as unknown[])[2] : undefined;
    const value = nested ?? getField(condition, field) ?? positional;
    if (value === undefined) return fallback;
    if (numberKind(value) === undefined) throw badValue(`${field.slice(1)} must be a number`);
    const distance = toDouble(value);
    if (!(distance >= 0)) throw badValue(`${field.slice(1)} must be non-negative`);
    return distance;
  };
  return {
    min: limit('$minDistance', 0),
    max: limit('$maxDistance', Infinity),
    distance: (value) => nearest(value, (point) => distanceFrom(center, point, spherical, metres)),
  };
}

/** The distance of the query's unit between two points; shared with `$geoNear`. */
export function distanceFrom(center: Point, point: Point, spherical: boolean, metres: boolean): number {
  if (!spherical) return Math.hypot(point[0] - center[0], point[1] - center[1]);
  return distanceOnSphere(center, point) * (metres ? earthRadius : 1);
}

/** A field may hold several locations; the nearest counts. NaN when it holds none. */
export function nearest(value: unknown, distance: (point: Point) => number): number {
  const point = readPoint(value);
  if (point) return distance(point);
  if (!Array.isArray(value)) return NaN;
  const all = value.map((item) => readPoint(item)).filter((item) => item !== undefined);
  return all.length === 0 ? NaN : Math.min(...all.map(distance));
}
