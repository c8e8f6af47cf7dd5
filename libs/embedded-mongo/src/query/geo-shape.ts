import { badValue } from '../errors.js';
import { getField, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { readGeometry, readPoint, readPosition, storedGeometry } from './geo-json.js';
import { toVector, type Point } from './sphere.js';
import type { ValueTest } from './value-tests.js';

/** `$box`, `$center` and `$polygon` lie on a plane and hold points only; the others lie on the earth. */
export function testShape(operator: string, name: string, argument: unknown): ValueTest {
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
