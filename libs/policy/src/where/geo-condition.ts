import { Refused, refusals } from '#agent';
import { isPlainObject } from '../model/plain-object.js';
import { isTyped, isWithin, reduceTyped, type TypedValue } from './typed-value.js';

/**
 * Geo conditions in one form, whatever the caller wrote: points are GeoPoint values; `$near` and `$nearSphere` hold a
 * point, their distance stands beside them; `$geoWithin` holds exactly one of `$centerSphere: [point, radians]`,
 * `$box: [point, point]`, `$polygon: [points] | Polygon`, `$geometry: GeoJSON`; `$geoIntersects` holds `$geometry`.
 */
export function geoCondition(operator: string, operand: unknown): Record<string, unknown> {
  if (operator === '$geoWithin') return { $geoWithin: region(operand) };
  if (operator === '$geoIntersects')
    return { $geoIntersects: { $geometry: geometry(only(operand, '$geometry')) } };
  if (isPlainObject(operand) && '$geometry' in operand) return nearGeometry(operator, operand);
  return { [operator]: point(operand) };
}

export function distance(operator: string, operand: unknown): number {
  if (typeof operand === 'number' && Number.isFinite(operand) && operand >= 0) return operand;
  throw refused(`'${operator}' needs a number that is not negative`);
}

/** GeoJSON distances are metres, Parse's are radians unless named otherwise. */
function nearGeometry(operator: string, operand: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { $geometry, $maxDistance, ...others } = operand;
  const shape = geometry($geometry);
  if (Object.keys(others).length > 0 || shape.type !== 'Point') {
    throw refused(`'${operator}' takes a GeoPoint, or $geometry with a Point and $maxDistance in metres`);
  }
  return {
    [operator]: point(shape.coordinates),
    ...($maxDistance !== undefined && {
      $maxDistanceInKilometers: distance('$maxDistance', $maxDistance) / 1000,
    }),
  };
}

function region(operand: unknown): Record<string, unknown> {
  const [shape, ...others] = isPlainObject(operand) ? Object.keys(operand) : [];
  const value = isPlainObject(operand) && shape !== undefined ? operand[shape] : undefined;
  if (others.length === 0 && shape === '$geometry') return { $geometry: geometry(value) };
  if (others.length === 0 && shape === '$box' && Array.isArray(value) && value.length === 2) {
    return { $box: value.map(point) };
  }
  if (others.length === 0 && shape === '$centerSphere' && Array.isArray(value) && value.length === 2) {
    return { $centerSphere: [point(value[0]), distance('$centerSphere', value[1])] };
  }
  if (others.length === 0 && shape === '$polygon') {
    if (isTyped(value) && value.__type === 'Polygon') return { $polygon: reduceTyped(value) };
    if (Array.isArray(value) && value.length >= 3) return { $polygon: value.map(point) };
  }
  throw refused(
    "'$geoWithin' takes one of $centerSphere: [point, radians], $box: [point, point], $polygon: [three or more points], $geometry",
  );
}

function only(operand: unknown, key: string): unknown {
  if (isPlainObject(operand) && Object.keys(operand).length === 1 && key in operand) return operand[key];
  throw refused(`'$geoIntersects' takes exactly ${key}`);
}

/** A GeoPoint, or a `[longitude, latitude]` pair as GeoJSON orders it. */
function point(value: unknown): TypedValue {
  if (isTyped(value) && value.__type === 'GeoPoint') return reduceTyped(value);
  if (Array.isArray(value) && value.length === 2 && isWithin(value[0], 180) && isWithin(value[1], 90)) {
    return { __type: 'GeoPoint', latitude: value[1], longitude: value[0] };
  }
  throw refused('A point is a GeoPoint or [longitude, latitude]');
}

/** How deep the coordinates of each GeoJSON shape are nested above one position. */
const NESTING: Readonly<Record<string, number>> = {
  Point: 0,
  MultiPoint: 1,
  LineString: 1,
  Polygon: 2,
  MultiLineString: 2,
  MultiPolygon: 3,
};

function geometry(value: unknown): { readonly type: string; readonly coordinates: unknown } {
  if (isTyped(value) && value.__type === 'GeoPoint') {
    const { longitude, latitude } = reduceTyped(value);
    return { type: 'Point', coordinates: [longitude, latitude] };
  }
  if (isPlainObject(value) && Object.keys(value).length === 2) {
    const { type, coordinates } = value;
    const levels = typeof type === 'string' && Object.hasOwn(NESTING, type) ? NESTING[type] : undefined;
    if (typeof type === 'string' && levels !== undefined && isNested(coordinates, levels)) {
      return { type, coordinates };
    }
  }
  throw refused(`'$geometry' takes a GeoPoint or GeoJSON: ${Object.keys(NESTING).join(', ')}`);
}

function isNested(value: unknown, levels: number): boolean {
  if (!Array.isArray(value) || value.length === 0) return false;
  if (levels > 0) return value.every((element) => isNested(element, levels - 1));
  return value.length === 2 && isWithin(value[0], 180) && isWithin(value[1], 90);
}

function refused(message: string): Refused {
  return new Refused(refusals.invalidQuery(message));
}
