import { badValue, notImplemented } from '../errors.js';
import { getField, isDocument, type Document } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';

/** Longitude and latitude, or x and y on a plane. */
export type Point = readonly [number, number];
type Ring = readonly Point[];

/** A region: whether it holds a point, and its own points for tests of whole shapes against it. */
interface Shape {
  contains(point: Point): boolean;
  readonly corners: readonly Point[];
}

const radian = Math.PI / 180;
const tolerance = 1e-9;

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

/** Great-circle distance in radians. */
export function distanceOnSphere(a: Point, b: Point): number {
  const [fromLat, toLat] = [a[1] * radian, b[1] * radian];
  const half =
    Math.sin((toLat - fromLat) / 2) ** 2 +
    Math.cos(fromLat) * Math.cos(toLat) * Math.sin(((b[0] - a[0]) * radian) / 2) ** 2;
  return 2 * Math.asin(Math.min(1, Math.sqrt(half)));
}

/** Compiles `$box`, `$center`, `$centerSphere`, `$polygon` or `$geometry`. */
export function compileShape(name: string, argument: unknown): Shape {
  switch (name) {
    case '$box': {
      const [low, high] = points(argument, 2);
      if (!low || !high) throw badValue('$box needs two corners');
      const contains = ([x, y]: Point): boolean => between(x, low[0], high[0]) && between(y, low[1], high[1]);
      return { contains, corners: [low, [low[0], high[1]], high, [high[0], low[1]]] };
    }
    case '$center':
    case '$centerSphere':
      return circle(name, argument);
    case '$polygon':
      return polygon([isDocument(argument) ? points(Object.values(argument), 3) : points(argument, 3)]);
    case '$geometry':
      return geometry(argument);
    default:
      throw badValue(`unknown geo specifier: ${name}`);
  }
}

function circle(name: string, argument: unknown): Shape {
  const [place, size] = Array.isArray(argument) ? (argument as unknown[]) : [];
  const center = readPoint(place);
  const radius = toDouble(size);
  if (!center || !(radius >= 0)) throw badValue(`${name} needs a center and a non-negative radius`);
  const contains =
    name === '$centerSphere'
      ? (point: Point) => distanceOnSphere(center, point) <= radius
      : (point: Point) => Math.hypot(point[0] - center[0], point[1] - center[1]) <= radius;
  return { contains, corners: [center] };
}

function geometry(argument: unknown): Shape {
  if (!isDocument(argument)) throw badValue('$geometry expects a GeoJSON object');
  const type = getField(argument, 'type');
  const coordinates = getField(argument, 'coordinates');
  if (type === 'Point') {
    const only = readPoint(coordinates);
    if (!only) throw badValue('Point must have two numeric coordinates');
    return { contains: (point) => samePoint(point, only), corners: [only] };
  }
  if (type === 'Polygon') return polygon(readRings(coordinates));
  if (type === 'MultiPolygon') {
    if (!Array.isArray(coordinates)) throw badValue('MultiPolygon coordinates must be an array');
    const all = coordinates.map((rings) => polygon(readRings(rings)));
    return {
      contains: (point) => all.some((part) => part.contains(point)),
      corners: all.flatMap((part) => part.corners),
    };
  }
  throw notImplemented(`$geometry of type ${String(type)}`);
}

function readRings(coordinates: unknown): Ring[] {
  if (!Array.isArray(coordinates) || coordinates.length === 0)
    throw badValue('Polygon coordinates must be an array');
  return coordinates.map((ring) => {
    const corners = points(ring, 4);
    if (!samePoint(corners[0] as Point, corners.at(-1) as Point)) {
      throw badValue('Polygon loop is not closed: its first and last vertex differ');
    }
    return corners;
  });
}

function polygon(rings: readonly Ring[]): Shape {
  const [outer = [], ...holes] = rings;
  return {
    contains: (point) => inRing(point, outer) && !holes.some((hole) => inRing(point, hole)),
    corners: outer,
  };
}

/** Whether a stored location lies within a shape, or for an intersection meets it. */
export function shapeWithin(value: unknown, shape: Shape, intersects: boolean): boolean {
  const point = readPoint(value);
  if (point) return shape.contains(point);
  const own = readStoredShape(value);
  if (!own) return false;
  if (!intersects) return own.corners.length > 0 && own.corners.every((corner) => shape.contains(corner));
  return (
    own.corners.some((corner) => shape.contains(corner)) ||
    shape.corners.some((corner) => own.contains(corner)) ||
    edgesCross(own.corners, shape.corners)
  );
}

function readStoredShape(value: unknown): Shape | undefined {
  if (!isDocument(value) || typeof getField(value, 'type') !== 'string') return undefined;
  if (!['Polygon', 'MultiPolygon'].includes(getField(value, 'type') as string)) return undefined;
  return geometry(value as Document);
}

function points(value: unknown, atLeast: number): Point[] {
  const found = Array.isArray(value) ? value.map(readPoint) : [];
  if (found.length < atLeast || found.includes(undefined))
    throw badValue(`Point must only contain numeric elements, and ${atLeast} points are needed`);
  return found as Point[];
}

const between = (value: number, a: number, b: number): boolean =>
  value >= Math.min(a, b) && value <= Math.max(a, b);
const samePoint = (a: Point, b: Point): boolean => a[0] === b[0] && a[1] === b[1];

const side = (a: Point, b: Point, point: Point): number =>
  (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0]);

function onEdge(point: Point, a: Point, b: Point): boolean {
  return (
    Math.abs(side(a, b, point)) < tolerance && between(point[0], a[0], b[0]) && between(point[1], a[1], b[1])
  );
}

/** Counts the edges a ray to the east crosses; a point on the border is inside. */
function inRing(point: Point, ring: Ring): boolean {
  let inside = false;
  for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) {
    const a = ring[j] as Point;
    const b = ring[i] as Point;
    if (onEdge(point, a, b)) return true;
    const crosses = b[1] > point[1] !== a[1] > point[1];
    if (crosses && point[0] < ((a[0] - b[0]) * (point[1] - b[1])) / (a[1] - b[1]) + b[0]) inside = !inside;
  }
  return inside;
}

function edgesCross(a: Ring, b: Ring): boolean {
  return a.some((start, i) => {
    const end = a[(i + 1) % a.length] as Point;
    return b.some((from, j) => {
      const to = b[(j + 1) % b.length] as Point;
      return (
        side(start, end, from) * side(start, end, to) < 0 && side(from, to, start) * side(from, to, end) < 0
      );
    });
  });
}
