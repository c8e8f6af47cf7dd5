import { type Document, getField, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { badValue } from '../errors.js';

/** Longitude and latitude, or x and y on a plane. */
export type Point = readonly [number, number];
/** A point of the unit sphere. */
type Vector = readonly [number, number, number];
/** The shortest way between two points. */
type Arc = readonly [Vector, Vector];

const radian = Math.PI / 180;
/** In radians: some millimetres on earth. */
const tolerance = 1e-9;

export function toVector([longitude, latitude]: Point): Vector {
  const [x, y] = [longitude * radian, latitude * radian];
  return [Math.cos(y) * Math.cos(x), Math.cos(y) * Math.sin(x), Math.sin(y)];
}

const dot = (a: Vector, b: Vector): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a: Vector, b: Vector): Vector => [
  a[1] * b[2] - a[2] * b[1],
  a[2] * b[0] - a[0] * b[2],
  a[0] * b[1] - a[1] * b[0],
];
const unit = (a: Vector): Vector => {
  const length = Math.hypot(...a) || 1;
  return [a[0] / length, a[1] / length, a[2] / length];
};
const add = (a: Vector, b: Vector, times = 1): Vector => [
  a[0] + b[0] * times,
  a[1] + b[1] * times,
  a[2] + b[2] * times,
];

/** The distance of two points in radians. */
export const angle = (a: Vector, b: Vector): number => Math.atan2(Math.hypot(...cross(a, b)), dot(a, b));

function distanceToArc(point: Vector, [a, b]: Arc): number {
  const normal = unit(cross(a, b));
  const beside = dot(cross(normal, a), point) > 0 && dot(cross(b, normal), point) > 0;
  return beside
    ? angle(point, add(point, normal, -dot(normal, point)))
    : Math.min(angle(point, a), angle(point, b));
}

/** Whether two arcs cross each other; those that only touch do not. */
function arcsCross([a, b]: Arc, [c, d]: Arc): boolean {
  const [first, second] = [cross(a, b), cross(c, d)];
  const sides = [-dot(first, c), dot(first, d), -dot(second, b), dot(second, a)];
  return sides.every((side) => side > 1e-15) || sides.every((side) => side < -1e-15);
}

const isOn = (point: Vector, arc: Arc): boolean => distanceToArc(point, arc) < tolerance;
const arcsOf = (ring: readonly Vector[]): Arc[] =>
  ring.map((corner, i) => [corner, ring[(i + 1) % ring.length] as Vector]);

/** How far the way around a ring turns left in all: 0 for one half of the sphere, more for a smaller part on the left. */
function turning(ring: readonly Vector[]): number {
  const normals = arcsOf(ring).map(([a, b]) => cross(a, b));
  return normals.reduce((sum, normal, i) => {
    const next = normals[(i + 1) % ring.length] as Vector;
    const corner = ring[(i + 1) % ring.length] as Vector;
    return sum + Math.sign(dot(cross(normal, next), corner)) * angle(normal, next);
  }, 0);
}

/** A polygon, with holes: the smaller of the two parts its outer ring cuts the sphere into, of equal ones the left. */
class Area {
  readonly arcs: readonly Arc[];
  readonly corners: readonly Vector[];
  private readonly outside: Vector;
  private readonly inverted: boolean;

  /** `strict` takes what lies to the left of the outer ring, however large that is. */
  constructor(rings: readonly (readonly Vector[])[], strict = false) {
    this.arcs = rings.flatMap(arcsOf);
    this.corners = rings.flat();
    const [outer = []] = rings;
    const middle = unit(outer.reduce((sum, corner) => add(sum, corner), [0, 0, 0] as Vector));
    // Not quite opposite to the middle: to a point there would be no shortest way.
    this.outside = unit(add([-middle[0], -middle[1], -middle[2]], [0.013, 0.007, 0.011]));
    const [a, b] = arcsOf(outer)[0] as Arc;
    const isLeftInside = this.isInside(unit(add(add(a, b), cross(a, b), 1e-3)));
    this.inverted = isLeftInside !== (strict || turning(outer) > -tolerance);
  }

  /** Whether a point is inside or on the border. */
  covers(point: Vector): boolean {
    return this.holds(point) || this.arcs.some((arc) => isOn(point, arc));
  }

  /** Whether a point is inside and not on the border. */
  holds(point: Vector): boolean {
    return this.isInside(point) !== this.inverted && !this.arcs.some((arc) => isOn(point, arc));
  }

  overlaps(other: Area): boolean {
    return (
      this.samples.some((point) => other.holds(point)) || other.samples.some((point) => this.holds(point))
    );
  }

  private get samples(): Vector[] {
    return [...this.corners, unit(this.corners.reduce((sum, corner) => add(sum, corner)))].filter((point) =>
      this.covers(point),
    );
  }

  /** Whether the way to a point outside crosses the rings an odd number of times. */
  private isInside(point: Vector): boolean {
    const plane = cross(point, this.outside);
    let inside = false;
    for (const [a, b] of this.arcs) {
      // A corner on the way belongs to one of its two arcs.
      const sideA = dot(plane, a) >= 0;
      if (sideA === dot(plane, b) >= 0) continue;
      const normal = cross(a, b);
      const from = dot(normal, point) >= 0;
      if (from !== dot(normal, this.outside) >= 0 && from !== sideA) inside = !inside;
    }
    return inside;
  }
}

/** Points, lines and areas together. */
class Geometry {
  constructor(
    /** Single points and those of lines. */
    readonly points: readonly Vector[],
    readonly lines: readonly Arc[] = [],
    readonly areas: readonly Area[] = [],
  ) {}

  private get arcs(): Arc[] {
    return [...this.lines, ...this.areas.flatMap((area) => area.arcs)];
  }

  intersects(other: Geometry): boolean {
    return (
      this.points.some((point) => other.covers(point)) ||
      other.points.some((point) => this.covers(point)) ||
      this.areas.some((area) => other.areas.some((another) => area.overlaps(another))) ||
      this.crosses(other)
    );
  }

  /** Whether no part of this lies outside of the areas of the other. */
  within(other: Geometry): boolean {
    const covered = (point: Vector): boolean => other.areas.some((area) => area.covers(point));
    return (
      this.points.every(covered) &&
      this.areas.every((area) => area.corners.every(covered)) &&
      !other.areas.some((area) =>
        area.corners.some((corner) => this.areas.some((own) => own.holds(corner))),
      ) &&
      !this.crosses(other)
    );
  }

  /** In radians; zero on and within it. */
  distance(point: Vector): number {
    if (this.areas.some((area) => area.holds(point))) return 0;
    return Math.min(
      ...this.points.map((own) => angle(own, point)),
      ...this.arcs.map((arc) => distanceToArc(point, arc)),
    );
  }

  /** Whether all of it lies within a distance of less than a quarter of the earth, or all around it. */
  isNear(center: Vector, radius: number): boolean {
    return [...this.points, ...this.areas.flatMap((area) => area.corners)].every(
      (point) => angle(point, center) <= radius,
    );
  }

  private covers(point: Vector): boolean {
    return (
      this.points.some((own) => angle(own, point) < tolerance) ||
      this.lines.some((line) => isOn(point, line)) ||
      this.areas.some((area) => area.covers(point))
    );
  }

  private crosses(other: Geometry): boolean {
    const others = other.arcs;
    return this.arcs.some((arc) => others.some((another) => arcsCross(arc, another)));
  }
}

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
