import type { Document } from 'mongodb';
import { UnstorableValue, untranslatable } from '../errors.js';
import { isPlainObject } from '../storage/own-property.js';
import { coordinatesOf } from '../storage/to-storage.js';

const EARTH_RADIUS_MILES = 3959;
const EARTH_RADIUS_KILOMETERS = 6371;

/** Half the circumference of the globe, in radians, for queries without a distance bound. */
const ANYWHERE = Math.PI;

const UNITS_PER_RADIAN: Readonly<Record<string, number>> = {
  $maxDistance: 1,
  $maxDistanceInRadians: 1,
  $maxDistanceInMiles: EARTH_RADIUS_MILES,
  $maxDistanceInKilometers: EARTH_RADIUS_KILOMETERS,
};

export const isDistanceKey = (key: string): boolean => Object.hasOwn(UNITS_PER_RADIAN, key);

function nonNegative(value: unknown, what: string): number {
  if (typeof value !== 'number' || !(value >= 0))
    throw untranslatable(`${what} must be a number, not negative`);
  return value;
}

/** `[longitude, latitude]` of a GeoPoint, a GeoJSON point or such a pair. */
function pointOf(value: unknown): [number, number] {
  const geoJson = isPlainObject(value) && Array.isArray(value['coordinates']) ? value['coordinates'] : value;
  const point = Array.isArray(geoJson) ? { longitude: geoJson[0], latitude: geoJson[1] } : geoJson;
  try {
    return coordinatesOf(point);
  } catch (error) {
    throw error instanceof UnstorableValue ? untranslatable(error.problem) : error;
  }
}

/** The distance bound beside a near operator, in radians. */
function maxDistanceOf(constraint: Readonly<Record<string, unknown>>): number | undefined {
  for (const [key, units] of Object.entries(UNITS_PER_RADIAN)) {
    if (constraint[key] !== undefined) return nonNegative(constraint[key], key) / units;
  }
  return undefined;
}

/** Sorted by distance where the database supports it; a circle where the constraint only filters (counts, aggregation). */
export function nearToQuery(constraint: Readonly<Record<string, unknown>>, filterOnly: boolean): Document {
  const operand = constraint['$nearSphere'] ?? constraint['$near'];
  const geometry = isPlainObject(operand) ? operand['$geometry'] : undefined;
  const center = pointOf(geometry ?? operand);
  const radius = maxDistanceOf(constraint);
  if (filterOnly) return { $geoWithin: { $centerSphere: [center, radius ?? ANYWHERE] } };
  return { $nearSphere: center, ...(radius !== undefined && { $maxDistance: radius }) };
}

function listOf(value: unknown, least: number, what: string): unknown[] {
  if (!Array.isArray(value) || value.length < least)
    throw untranslatable(`${what} needs ${least} or more entries`);
  return value;
}

const GEOMETRY_TYPES = new Set([
  'Point',
  'LineString',
  'Polygon',
  'MultiPoint',
  'MultiLineString',
  'MultiPolygon',
]);

function geometryOf(value: unknown): Document {
  if (!isPlainObject(value)) throw untranslatable('$geometry must be an object');
  if (value['__type'] === 'GeoPoint') return { type: 'Point', coordinates: pointOf(value) };
  if (value['__type'] === 'Polygon') {
    const ring = listOf(value['coordinates'], 3, 'Polygon').map((pair) => {
      const [latitude, longitude] = listOf(pair, 2, 'a vertex');
      return pointOf({ latitude, longitude });
    });
    const [first] = ring;
    const closed = first && String(first) !== String(ring.at(-1)) ? [...ring, first] : ring;
    return { type: 'Polygon', coordinates: [closed] };
  }
  const { type, coordinates } = value;
  if (typeof type !== 'string' || !GEOMETRY_TYPES.has(type) || !Array.isArray(coordinates))
    throw untranslatable('$geometry needs a GeoJSON type and coordinates');
  return { type, coordinates };
}

/** Parse Server reads the pairs of a polygon in this operator as longitude, latitude. */
function polygonOf(value: unknown): Document {
  const vertices = isPlainObject(value) && value['__type'] === 'Polygon' ? value['coordinates'] : value;
  return { $polygon: listOf(vertices, 3, '$polygon').map(pointOf) };
}

function centerSphereOf(value: unknown): Document {
  const [center, radius] = listOf(value, 2, '$centerSphere');
  return { $centerSphere: [pointOf(center), nonNegative(radius, 'the radius')] };
}

const AREAS: Readonly<Record<string, (value: unknown) => Document>> = {
  $box: (value) => ({ $box: listOf(value, 2, '$box').slice(0, 2).map(pointOf) }),
  $polygon: polygonOf,
  $centerSphere: centerSphereOf,
  $geometry: (value) => ({ $geometry: geometryOf(value) }),
};

export function withinToQuery(operand: unknown): Document {
  const shapes = isPlainObject(operand) ? Object.keys(operand) : [];
  const area = shapes.length === 1 ? AREAS[shapes[0] as string] : undefined;
  if (!area) throw untranslatable(`$geoWithin takes exactly one of ${Object.keys(AREAS).join(', ')}`);
  return { $geoWithin: area((operand as Document)[shapes[0] as string]) };
}

export function intersectsToQuery(operand: unknown): Document {
  const geometry = isPlainObject(operand) ? (operand['$point'] ?? operand['$geometry']) : undefined;
  return { $geoIntersects: { $geometry: geometryOf(geometry) } };
}
