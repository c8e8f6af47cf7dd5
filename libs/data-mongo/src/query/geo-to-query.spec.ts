import type { Document } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { MUSIC } from '#data/contracts';
import { ParseStorage } from '../storage/parse-storage.js';
import { classWhereToQuery } from './where-to-query.js';

const ARTIST = new ParseStorage('Artist', MUSIC.get('Artist'));
const place = (latitude: number, longitude: number) => ({ __type: 'GeoPoint', latitude, longitude });

describe('places in queries', () => {
  it('gives a place in longitude, latitude and distances in radians', () => {
    const near = (distance: Document) =>
      classWhereToQuery({ home: { $nearSphere: place(48, 16), ...distance } }, ARTIST)['home'];
    expect(near({ $maxDistance: 0.5 })).toEqual({ $nearSphere: [16, 48], $maxDistance: 0.5 });
    expect(near({ $maxDistanceInKilometers: 6371 })).toEqual({ $nearSphere: [16, 48], $maxDistance: 1 });
    expect(near({ $maxDistanceInMiles: 3959 })).toEqual({ $nearSphere: [16, 48], $maxDistance: 1 });
  });

  it('filters by a circle where the database cannot sort by distance', () => {
    const where = { home: { $nearSphere: place(48, 16), $maxDistance: 0.5 } };
    expect(classWhereToQuery(where, ARTIST, true)).toEqual({
      home: { $geoWithin: { $centerSphere: [[16, 48], 0.5] } },
    });
  });

  const areas: [string, Document, Document][] = [
    [
      'a box',
      { $geoWithin: { $box: [place(0, 1), place(2, 3)] } },
      {
        $geoWithin: {
          $box: [
            [1, 0],
            [3, 2],
          ],
        },
      },
    ],
    [
      'a polygon',
      { $geoWithin: { $polygon: [place(0, 1), place(2, 3), place(4, 5)] } },
      {
        $geoWithin: {
          $polygon: [
            [1, 0],
            [3, 2],
            [5, 4],
          ],
        },
      },
    ],
    [
      'a circle',
      { $geoWithin: { $centerSphere: [place(0, 1), 0.1] } },
      { $geoWithin: { $centerSphere: [[1, 0], 0.1] } },
    ],
    [
      'a point to meet',
      { $geoIntersects: { $point: place(0, 1) } },
      { $geoIntersects: { $geometry: { type: 'Point', coordinates: [1, 0] } } },
    ],
    [
      'a polygon to meet',
      {
        $geoIntersects: {
          $geometry: {
            __type: 'Polygon',
            coordinates: [
              [0, 1],
              [2, 3],
              [4, 5],
            ],
          },
        },
      },
      {
        $geoIntersects: {
          $geometry: {
            type: 'Polygon',
            coordinates: [
              [
                [1, 0],
                [3, 2],
                [5, 4],
                [1, 0],
              ],
            ],
          },
        },
      },
    ],
  ];
  it.each(areas)('translates %s', (_title, constraint, query) => {
    expect(classWhereToQuery({ home: constraint }, ARTIST)).toEqual({ home: query });
  });
});
