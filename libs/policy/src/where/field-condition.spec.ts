import { describe, expect, it } from 'vitest';
import { music, catchRefusal, shopReach } from '../music.fixture.js';
import { translateWhere } from './translate-where.js';

const place = (condition: unknown) =>
  translateWhere({ place: condition }, music('Song'), shopReach, { strictPointerShapes: true })['place'];
const at = (latitude: number, longitude: number) => ({ __type: 'GeoPoint', latitude, longitude });
const ring = [
  [0, 0],
  [0, 1],
  [1, 1],
  [0, 0],
];

describe('geo conditions', () => {
  it.each<[string, unknown, unknown]>([
    [
      'a point with a distance',
      { $nearSphere: at(1, 2), $maxDistanceInMiles: 5 },
      { $nearSphere: at(1, 2), $maxDistanceInMiles: 5 },
    ],
    ['a [longitude, latitude] pair', { $near: [2, 1] }, { $near: at(1, 2) }],
    [
      'GeoJSON metres as kilometres',
      { $nearSphere: { $geometry: { type: 'Point', coordinates: [2, 1] }, $maxDistance: 500 } },
      { $nearSphere: at(1, 2), $maxDistanceInKilometers: 0.5 },
    ],
    ['$box', { $geoWithin: { $box: [at(0, 0), [2, 1]] } }, { $geoWithin: { $box: [at(0, 0), at(1, 2)] } }],
    [
      '$centerSphere',
      { $geoWithin: { $centerSphere: [[2, 1], 0.1] } },
      { $geoWithin: { $centerSphere: [at(1, 2), 0.1] } },
    ],
    [
      '$polygon of points',
      { $geoWithin: { $polygon: [at(0, 0), at(0, 1), at(1, 1)] } },
      { $geoWithin: { $polygon: [at(0, 0), at(0, 1), at(1, 1)] } },
    ],
    [
      'a typed Polygon',
      { $geoWithin: { $polygon: { __type: 'Polygon', coordinates: ring, x: 1 } } },
      { $geoWithin: { $polygon: { __type: 'Polygon', coordinates: ring } } },
    ],
    [
      'a GeoJSON region',
      { $geoWithin: { $geometry: { type: 'Polygon', coordinates: [ring] } } },
      { $geoWithin: { $geometry: { type: 'Polygon', coordinates: [ring] } } },
    ],
    [
      'a GeoPoint to intersect',
      { $geoIntersects: { $geometry: at(1, 2) } },
      { $geoIntersects: { $geometry: { type: 'Point', coordinates: [2, 1] } } },
    ],
  ])('reads %s', (_, condition, expected) => {
    expect(place(condition)).toEqual(expected);
  });

  it.each<[string, unknown]>([
    ['a distance without a point', { $maxDistance: 1 }],
    ['a negative distance', { $near: at(0, 0), $maxDistanceInKilometers: -1 }],
    ['a distance as text', { $near: at(0, 0), $maxDistance: '1' }],
    ['near something that is no point', { $near: 'here' }],
    ['near a region', { $near: { $geometry: { type: 'Polygon', coordinates: [ring] } } }],
    ['a point off the globe', { $near: [200, 0] }],
    ['two regions at once', { $geoWithin: { $box: [at(0, 0), at(1, 1)], $centerSphere: [at(0, 0), 1] } }],
    ['no region', { $geoWithin: {} }],
    ['a polygon of two points', { $geoWithin: { $polygon: [at(0, 0), at(1, 1)] } }],
    ['a negative radius', { $geoWithin: { $centerSphere: [at(0, 0), -1] } }],
    ['an unknown GeoJSON type', { $geoWithin: { $geometry: { type: 'Circle', coordinates: [0, 0] } } }],
    [
      'GeoJSON with further members',
      { $geoWithin: { $geometry: { type: 'Polygon', coordinates: [ring], crs: {} } } },
    ],
    ['GeoJSON nested too little', { $geoWithin: { $geometry: { type: 'Polygon', coordinates: ring } } }],
    ['an intersection with nothing', { $geoIntersects: {} }],
    ['a region operator by itself', { $box: [at(0, 0), at(1, 1)] }],
  ])('refuses %s', (_, condition) => {
    expect(catchRefusal(() => place(condition))).toMatchObject({ code: 'invalid_query' });
  });
});
