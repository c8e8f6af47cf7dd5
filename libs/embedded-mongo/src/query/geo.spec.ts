import { describe, expect, it } from 'vitest';
import type { Document } from '../bson/document.js';
import type { QueryContext } from './context.js';
import { compileFilter } from './filter.js';

import fc from 'fast-check';

const ctx: QueryContext = { tick: () => {}, now: new Date(0) };
const holds = (condition: Document, a: unknown): boolean =>
  compileFilter({ a: condition }, ctx).matches({ a });

const geometry = (type: string, coordinates: unknown, more: Document = {}): Document => ({
  $geometry: { type, coordinates, ...more },
});
const point = (...coordinates: number[]): Document => ({ type: 'Point', coordinates });
const line = (...coordinates: number[][]): Document => ({ type: 'LineString', coordinates });
/** The corners of a box in degrees, once around. */
const ring = (west: number, south: number, east: number, north: number): number[][] => [
  [west, south],
  [east, south],
  [east, north],
  [west, north],
  [west, south],
];
const area = (...corners: [number, number, number, number]): Document => ({
  type: 'Polygon',
  coordinates: [ring(...corners)],
});
const box = (...corners: [number, number, number, number]): Document =>
  geometry('Polygon', [ring(...corners)]);
const strict = {
  crs: { type: 'name', properties: { name: 'urn:x-mongodb:crs:strictwinding:EPSG:4326' } },
};

describe('$geoIntersects', () => {
  it.each([
    ['a line that crosses the area', box(0, 0, 10, 10), line([-5, 5], [15, 5]), true],
    ['a line beside the area', box(0, 0, 10, 10), line([-5, 15], [15, 15]), false],
    [
      'two lines that cross',
      geometry('LineString', [
        [-1, 1],
        [1, -1],
      ]),
      line([-1, -1], [1, 1]),
      true,
    ],
    [
      'two lines that share an end',
      geometry('LineString', [
        [1, 0],
        [2, 1],
      ]),
      line([0, 0], [1, 0]),
      true,
    ],
    [
      'a point on a line',
      geometry('LineString', [
        [-1, 0],
        [1, 0],
      ]),
      point(0, 0),
      true,
    ],
    [
      'one of several points',
      geometry('MultiPoint', [
        [0, 0],
        [50, 50],
      ]),
      area(-5, -5, 5, 5),
      true,
    ],
    [
      'one of several lines',
      box(-5, -5, 5, 5),
      {
        type: 'MultiLineString',
        coordinates: [
          [
            [-1, 0],
            [1, 0],
          ],
        ],
      },
      true,
    ],
    ['an area inside the other', box(-5, -5, 5, 5), area(-1, -1, 1, 1), true],
    ['an area around the other', box(-1, -1, 1, 1), area(-5, -5, 5, 5), true],
    ['the same area', box(-5, -5, 5, 5), area(-5, -5, 5, 5), true],
    ['areas that share a corner alone', box(0, 0, 10, 10), area(10, 10, 20, 20), false],
    [
      'a part of a collection',
      box(-5, -5, 5, 5),
      { type: 'GeometryCollection', geometries: [point(50, 50), point(0, 0)] },
      true,
    ],
    ['a point east of the date line', box(179, -1, -179, 1), point(-179.5, 0), true],
    ['a point far from the date line', box(179, -1, -179, 1), point(0, 0), false],
    ['a point in a hole', geometry('Polygon', [ring(-9, -9, 9, 9), ring(-2, -2, 2, 2)]), point(0, 0), false],
    ['a legacy pair', box(-5, -5, 5, 5), [1, 1], true],
    ['what is no geometry', box(-5, -5, 5, 5), { type: 'Point', coordinates: ['x', 1] }, false],
    [
      'what lies outside of a ring that is wound the other way, when that counts',
      geometry('Polygon', [ring(-9, -9, 9, 9).toReversed()], strict),
      point(50, 50),
      true,
    ],
  ])('with %s', (_title, wanted, stored, matches) => {
    expect(holds({ $geoIntersects: wanted }, stored)).toBe(matches);
  });
});

describe('$geoWithin', () => {
  it.each([
    ['a line inside', box(-9, -9, 9, 9), line([0, 0], [5, 5]), true],
    ['a line that leaves', box(-9, -9, 9, 9), line([0, 0], [50, 5]), false],
    [
      'points inside',
      box(-9, -9, 9, 9),
      {
        type: 'MultiPoint',
        coordinates: [
          [0, 0],
          [5, 5],
        ],
      },
      true,
    ],
    [
      'one point outside',
      box(-9, -9, 9, 9),
      {
        type: 'MultiPoint',
        coordinates: [
          [0, 0],
          [50, 5],
        ],
      },
      false,
    ],
    [
      'an area over a hole',
      geometry('Polygon', [ring(-9, -9, 9, 9), ring(-2, -2, 2, 2)]),
      area(-5, -5, 5, 5),
      false,
    ],
    ['a line near the center of a cap', { $centerSphere: [[0, 0], 0.1] }, line([0, 0], [1, 1]), true],
    ['a line that leaves a cap', { $centerSphere: [[0, 0], 0.1] }, line([0, 0], [9, 9]), false],
    [
      'an area, which no plane shape holds',
      {
        $box: [
          [-9, -9],
          [9, 9],
        ],
      },
      area(-1, -1, 1, 1),
      false,
    ],
    [
      'a point on a slanting edge of a plane shape',
      {
        $polygon: [
          [0, 0],
          [10, 10],
          [10, 0],
        ],
      },
      [5, 5],
      false,
    ],
    [
      'a corner of a plane shape',
      {
        $polygon: [
          [4, 4],
          [6, 4],
          [5, 6],
        ],
      },
      [5, 6],
      true,
    ],
  ])('with %s', (_title, shape, stored, matches) => {
    expect(holds({ $geoWithin: shape }, stored)).toBe(matches);
  });

  it('of a box says what the box of degrees says, away from its edges', () => {
    const degrees = fc.integer({ min: -60, max: 60 });
    fc.assert(
      fc.property(
        degrees,
        degrees,
        fc.integer({ min: -80, max: 80 }),
        fc.integer({ min: -80, max: 80 }),
        (x, y, px, py) => {
          // An edge along a parallel is no shortest way: it bends by less than a degree over twenty.
          const [dx, dy] = [px - x, py - y];
          fc.pre(Math.abs(Math.abs(dx) - 10) > 0 && Math.abs(Math.abs(dy) - 10) > 1);
          const inside = Math.abs(dx) < 10 && Math.abs(dy) < 10;
          expect(holds({ $geoWithin: box(x - 10, y - 10, x + 10, y + 10) }, point(px, py))).toBe(inside);
        },
      ),
    );
  });
});

describe('a ring around half of the earth', () => {
  const around = [-180, -90, 0, 90].map((longitude, i) => [longitude, i % 2 === 0 ? -10 : 10]);
  const holdsPole = (corners: number[][], latitude: number): boolean =>
    holds({ $geoIntersects: geometry('Polygon', [[...corners, corners[0]]]) }, point(0, latitude));

  it('has its inside on the left', () => {
    expect([holdsPole(around, 89), holdsPole(around, -89)]).toEqual([true, false]);
    expect([holdsPole(around.toReversed(), 89), holdsPole(around.toReversed(), -89)]).toEqual([false, true]);
  });

  it('has the smaller part inside once it is moved, whatever its direction', () => {
    for (const ring of [around, around.toReversed()]) {
      const north = ring.map(([longitude, latitude]) => [longitude as number, (latitude as number) + 1]);
      expect([holdsPole(north, 89), holdsPole(north, -89)]).toEqual([true, false]);
    }
  });
});

describe('a geometry is refused', () => {
  it.each([
    ['beyond the pole', geometry('Point', [0, 91])],
    ['beyond the date line', geometry('Point', [181, 0])],
    ['with an open ring', geometry('Polygon', [ring(0, 0, 1, 1).slice(0, 4)])],
    [
      'with a ring that crosses itself',
      geometry('Polygon', [
        [
          [0, 0],
          [2, 2],
          [2, 0],
          [0, 2],
          [0, 0],
        ],
      ]),
    ],
    ['with a hole outside', geometry('Polygon', [ring(0, 0, 1, 1), ring(5, 5, 6, 6)])],
    ['as a line of one point', geometry('LineString', [[0, 0]])],
    [
      'in an unknown system of coordinates',
      geometry('Point', [0, 0], { crs: { type: 'name', properties: { name: 'x' } } }),
    ],
    ['of an unknown type', geometry('Circle', [0, 0])],
    ['as an empty collection', { $geometry: { type: 'GeometryCollection', geometries: [] } }],
  ])('%s', (_title, wanted) => {
    expect(() => holds({ $geoIntersects: wanted }, null)).toThrow(expect.objectContaining({ code: 2 }));
  });

  it('beside another condition on the same field', () => {
    const condition = { $geoIntersects: geometry('Point', [0, 0]), $exists: true };
    expect(() => holds(condition, null)).toThrow(expect.objectContaining({ code: 2 }));
  });
});
