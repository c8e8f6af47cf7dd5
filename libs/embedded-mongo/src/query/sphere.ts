/** Longitude and latitude, or x and y on a plane. */
export type Point = readonly [number, number];
/** A point of the unit sphere. */
export type Vector = readonly [number, number, number];
/** The shortest way between two points. */
export type Arc = readonly [Vector, Vector];

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
export function arcsCross([a, b]: Arc, [c, d]: Arc): boolean {
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
export class Area {
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
export class Geometry {
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
