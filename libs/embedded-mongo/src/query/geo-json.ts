import { badValue } from '../errors.js';
import { getField, isDocument, type Document } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { Area, arcsCross, Geometry, toVector, type Arc, type Point, type Vector } from './sphere.js';

const plainSystems = ['EPSG:4326', 'urn:ogc:def:crs:OGC:1.3:CRS84'];
const strictSystem = 'urn:x-mongodb:crs:strictwinding:EPSG:4326';

/** Reads `[lng, lat]`, `{lng, lat}` or a GeoJSON point. */
export function readPoint(value: unknown): Point | undefined {
  if (isDocument(value)) {
    const type = getField(value, 'type');
    if (typeof type === 'string')
      return type === 'Point' ? readPoint(getField(value, 'coordinates')) : undefined;
    return readPair(Object.values(value));
  }
  return Array.isArray(value) ? readPair(value) : undefined;
}

function readPair(values: readonly unknown[]): Point | undefined {
  const [x, y] = values;
  if (numberKind(x) === undefined || numberKind(y) === undefined) return undefined;
  const point: Point = [toDouble(x), toDouble(y)];
  return point.every(Number.isFinite) ? point : undefined;
}

/** A position on earth. Errors: 2 beyond 180 degrees of longitude or 90 of latitude. */
export function readPosition(value: unknown): Point {
  const point = readPoint(value);
  if (!point) throw badValue('Point must be an array or object of two numeric coordinates');
  if (Math.abs(point[0]) > 180 || Math.abs(point[1]) > 90)
    throw badValue(`longitude/latitude is out of bounds, lng: ${point[0]} lat: ${point[1]}`);
  return point;
}

/** Reads a GeoJSON geometry or a legacy pair. Errors: 2 for what is none. */
export function readGeometry(value: unknown): Geometry {
  if (!isDocument(value) || (!Object.hasOwn(value, 'type') && Object.keys(value).length === 2))
    return new Geometry([toVector(readPosition(value))]);
  const type = getField(value, 'type');
  if (type === 'GeometryCollection') {
    const parts = list(getField(value, 'geometries'), 'GeometryCollection geometries').map((part) => {
      if (isDocument(part) && getField(part, 'type') === 'GeometryCollection')
        throw badValue('GeometryCollection geometries must be valid geometries');
      return readGeometry(part);
    });
    return join(parts);
  }
  const strict = readSystem(value, type);
  const coordinates = getField(value, 'coordinates');
  const several = (read: (part: unknown) => Geometry): Geometry =>
    join(list(coordinates, `${String(type)} coordinates`).map(read));
  switch (type) {
    case 'Point':
      return readPointGeometry(coordinates);
    case 'LineString':
      return readLine(coordinates);
    case 'Polygon':
      return readPolygon(coordinates, strict);
    case 'MultiPoint':
      return several(readPointGeometry);
    case 'MultiLineString':
      return several(readLine);
    case 'MultiPolygon':
      return several((part) => readPolygon(part, false));
    default:
      throw badValue(`unknown GeoJSON type: ${String(type)}`);
  }
}

/** A stored value as a geometry; undefined for what is none. */
export function storedGeometry(value: unknown): Geometry | undefined {
  if (!isDocument(value) && !Array.isArray(value)) return undefined;
  try {
    return readGeometry(value);
  } catch {
    return undefined;
  }
}

/** Whether the geometry asks for the strict winding order, which no index holds. */
export const isStrict = (value: Document): boolean => readSystem(value, getField(value, 'type'));

function readSystem(value: Document, type: unknown): boolean {
  const system = getField(value, 'crs');
  if (system === undefined) return false;
  const properties = isDocument(system) ? getField(system, 'properties') : undefined;
  if (!isDocument(system) || getField(system, 'type') !== 'name' || !isDocument(properties))
    throw badValue("GeoJSON CRS must be an object with type 'name' and properties");
  const name = getField(properties, 'name');
  if (typeof name === 'string' && plainSystems.includes(name)) return false;
  if (name !== strictSystem) throw badValue(`Unknown CRS name: ${String(name)}`);
  if (type !== 'Polygon') throw badValue('Strict winding order is only supported by polygon');
  return true;
}

function list(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value) || value.length === 0) throw badValue(`${what} must be an array, not empty`);
  return value;
}

const join = (parts: readonly Geometry[]): Geometry =>
  new Geometry(
    parts.flatMap((part) => part.points),
    parts.flatMap((part) => part.lines),
    parts.flatMap((part) => part.areas),
  );

const readPointGeometry = (value: unknown): Geometry => new Geometry([toVector(readPosition(value))]);

const readVectors = (value: unknown, what: string): Vector[] =>
  list(value, what).map((position) => toVector(readPosition(position)));

function readLine(value: unknown): Geometry {
  const points = readVectors(value, 'LineString coordinates');
  if (points.length < 2) throw badValue('GeoJSON LineString must have at least 2 vertices');
  return new Geometry(points, chain(points));
}

const chain = (points: readonly Vector[]): Arc[] =>
  points.slice(1).map((point, i) => [points[i] as Vector, point] as const);

function readPolygon(value: unknown, strict: boolean): Geometry {
  const rings = list(value, 'Polygon coordinates').map(readRing);
  const [outer, ...holes] = rings as [Vector[], ...Vector[][]];
  const shell = new Area([outer]);
  for (const hole of holes) {
    const inside = hole.every((corner) => shell.covers(corner));
    if (!inside || ringsCross(outer, hole))
      throw badValue('Secondary loops not contained by first exterior loop - secondary loops must be holes');
  }
  if (strict && holes.length > 0) throw badValue('Only one simple loop is allowed in a big polygon');
  return new Geometry([], [], [new Area(rings, strict)]);
}

const same = (a: Vector, b: Vector | undefined): boolean =>
  b !== undefined && a.every((part, i) => Math.abs(part - (b[i] as number)) < 1e-15);

/** The corners of a ring without the repeated last one. */
function readRing(value: unknown): Vector[] {
  const all = readVectors(value, 'Polygon loop');
  const corners = all.filter((corner, i) => !same(corner, all[i + 1]));
  if (all.length < 4) throw badValue('Loop must have at least 3 different vertices');
  if (!same(corners.at(-1) as Vector, corners[0]))
    throw badValue('Loop is not closed: its first and last vertex differ');
  const ring = corners.slice(0, -1);
  if (ring.length < 3) throw badValue('Loop must have at least 3 different vertices');
  if (ring.some((corner, i) => ring.findIndex((other) => same(corner, other)) < i))
    throw badValue('Loop is not valid: duplicate vertices');
  if (ringsCross(ring, ring)) throw badValue('Loop is not valid: its edges cross');
  return ring;
}

function ringsCross(a: readonly Vector[], b: readonly Vector[]): boolean {
  const others = chain([...b, b[0] as Vector]);
  return chain([...a, a[0] as Vector]).some((arc) => others.some((other) => arcsCross(arc, other)));
}
