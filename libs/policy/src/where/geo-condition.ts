import { refuse } from '#core';
import { isPlainObject, isTyped, isWithin, reduceTyped, type TypedValue } from '../model/where.js';

/**
 * Normalises geo conditions: points are GeoPoint values; `$near` and `$nearSphere` have a point, with their distance beside them;
 * `$geoWithin` has exactly one of `$centerSphere: [point, radians]`, `$box: [point, point]`, `$polygon: [points] | Polygon`,
 * `$geometry: GeoJSON`; `$geoIntersects` has `$geometry`.
 */
export function geoCondition(operator: string, operand: unknown): Record<string, unknown> {
  if (operator === '$geoWithin') return { $geoWithin: region(operand) };
  if (operator === '$geoIntersects') {
    const form = isPlainObject(operand) && '$point' in operand ? '$point' : '$geometry';
    const value = only(operand, form);
    return { $geoIntersects: { $geometry: geometry(form === '$point' ? point(value) : value) } };
  }
  if (isPlainObject(operand) && '$geometry' in operand) return nearGeometry(operator, operand);
  return { [operator]: point(operand) };
}

export function distance(operator: string, operand: unknown): number {
  if (typeof operand === 'number' && Number.isFinite(operand) && operand >= 0) return operand;
  throw refuse.invalidQuery(`'${operator}' needs a number that is not negative`);
}

/** Distances of GeoJSON are in metres, those of Parse in radians unless named otherwise. */
function nearGeometry(operator: string, operand: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { $geometry, $maxDistance, ...others } = operand;
  const place = geometry($geometry);
  if (Object.keys(others).length > 0 || place.type !== 'Point') {
    throw refuse.invalidQuery(
      `'${operator}' takes a GeoPoint, or $geometry with a Point and $maxDistance in metres`,
    );
  }
  return {
    [operator]: point(place.coordinates),
    ...($maxDistance !== undefined && {
      $maxDistanceInKilometers: distance('$maxDistance', $maxDistance) / 1000,
    }),
  };
}

function region(operand: unknown): Record<string, unknown> {
  const [form, ...others] = isPlainObject(operand) ? Object.keys(operand) : [];
  const value = isPlainObject(operand) && form !== undefined ? operand[form] : undefined;
  if (others.length === 0 && form === '$geometry') return { $geometry: geometry(value) };
  if (others.length === 0 && form === '$box' && Array.isArray(value) && value.length === 2) {
    return { $box: value.map(point) };
  }
  if (others.length === 0 && form === '$centerSphere' && Array.isArray(value) && value.length === 2) {
    return { $centerSphere: [point(value[0]), distance('$centerSphere', value[1])] };
  }
  if (others.length === 0 && form === '$polygon') {
    if (isTyped(value) && value.__type === 'Polygon') return { $polygon: reduceTyped(value) };
    if (Array.isArray(value) && value.length >= 3) return { $polygon: value.map(point) };
  }
  throw refuse.invalidQuery(
    "'$geoWithin' takes one of $centerSphere: [point, radians], $box: [point, point], $polygon: [three or more points], $geometry",
  );
}

function only(operand: unknown, key: string): unknown {
  if (isPlainObject(operand) && Object.keys(operand).length === 1 && key in operand) return operand[key];
  throw refuse.invalidQuery("'$geoIntersects' takes $geometry or $point");
}

/** A GeoPoint, or a `[longitude, latitude]` pair in GeoJSON order. */
function point(value: unknown): TypedValue {
  if (isTyped(value) && value.__type === 'GeoPoint') return reduceTyped(value);
  if (Array.isArray(value) && value.length === 2 && isWithin(value[0], 180) && isWithin(value[1], 90)) {
    return { __type: 'GeoPoint', latitude: value[1], longitude: value[0] };
  }
  throw refuse.invalidQuery(
    'A point is [longitude, latitude] or {"__type":"GeoPoint","latitude":0,"longitude":0}',
  );
}

/** The nesting of the coordinates of each GeoJSON type above one position. */
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
  throw refuse.invalidQuery(`'$geometry' takes a GeoPoint or GeoJSON: ${Object.keys(NESTING).join(', ')}`);
}

function isNested(value: unknown, levels: number): boolean {
  if (!Array.isArray(value) || value.length === 0) return false;
  if (levels > 0) return value.every((element) => isNested(element, levels - 1));
  return value.length === 2 && isWithin(value[0], 180) && isWithin(value[1], 90);
}
