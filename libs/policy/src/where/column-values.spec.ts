import { describe, expect, it } from 'vitest';
import { music, catchRefusal, shopReach } from '../music.fixture.js';
import { translateWhere, type WhereOptions } from './translate-where.js';

const song = (where: unknown, options: Partial<WhereOptions> = {}) =>
  translateWhere(where, music('Song'), shopReach, { strictPointerShapes: true, ...options });
const note = (where: unknown) =>
  translateWhere(where, music('Note'), shopReach, { strictPointerShapes: true });
const artist1 = { __type: 'Pointer', className: 'Artist', objectId: 'a1' };
const iso = (text: string) => ({ __type: 'Date', iso: text });

describe('values compared with columns', () => {
  it.each<[string, unknown, unknown]>([
    [
      'ISO text meets a date column',
      { released_on: { $gte: '2024-05-01' } },
      { releasedOn: { $gte: iso('2024-05-01T00:00:00.000Z') } },
    ],
    [
      'ISO text without an offset is UTC',
      { createdAt: '2024-05-01T10:00:00' },
      { createdAt: iso('2024-05-01T10:00:00.000Z') },
    ],
    [
      'an offset is honoured',
      { updatedAt: { $lt: '2024-05-01T10:00:00+0200' } },
      { updatedAt: { $lt: iso('2024-05-01T08:00:00.000Z') } },
    ],
    [
      'ISO text in a set',
      { releasedOn: { $in: ['2024-05-01'] } },
      { releasedOn: { $in: [iso('2024-05-01T00:00:00.000Z')] } },
    ],
    [
      'a Date object becomes its typed form',
      { releasedOn: { $lt: new Date(0) } },
      { releasedOn: { $lt: iso('1970-01-01T00:00:00.000Z') } },
    ],
    ['text on a text column stays text', { title: '2024-05-01' }, { title: '2024-05-01' }],
    [
      'a typed value keeps only its own members',
      { artist: { ...artist1, name: 'smuggled', ACL_: 1 } },
      { artist: artist1 },
    ],
    [
      'every type is reduced',
      {
        $and: [
          { meta: { __type: 'Date', iso: '2024-05-01', x: 1 } },
          { meta: { __type: 'File', name: 'f.png', url: 'u', x: 1 } },
          { meta: { __type: 'GeoPoint', latitude: 1, longitude: 2, x: 1 } },
          { meta: { __type: 'Bytes', base64: 'AA==', x: 1 } },
          {
            meta: {
              __type: 'Polygon',
              coordinates: [
                [0, 0],
                [0, 1],
                [1, 1],
              ],
              x: 1,
            },
          },
          { meta: { __type: 'Relation', className: 'Song', x: 1 } },
        ],
      },
      {
        $and: [
          { meta: iso('2024-05-01T00:00:00.000Z') },
          { meta: { __type: 'File', name: 'f.png', url: 'u' } },
          { meta: { __type: 'GeoPoint', latitude: 1, longitude: 2 } },
          { meta: { __type: 'Bytes', base64: 'AA==' } },
          {
            meta: {
              __type: 'Polygon',
              coordinates: [
                [0, 0],
                [0, 1],
                [1, 1],
              ],
            },
          },
          { meta: { __type: 'Relation', className: 'Song' } },
        ],
      },
    ],
  ])('%s', (_, where, expected) => {
    expect(song(where)).toEqual(expected);
  });
});

describe('pointer shapes', () => {
  it.each<[string, unknown, unknown]>([
    ['a bare id', { artist: 'a1' }, { artist: artist1 }],
    ['a bare id under an operator', { artist: { $ne: 'a1' } }, { artist: { $ne: artist1 } }],
    ['a prefixed id', { artist: 'Artist$a1' }, { artist: artist1 }],
    [
      'a mixed set',
      { artist: { $in: ['a1', 'Artist$a1', artist1] } },
      { artist: { $in: [artist1, artist1, artist1] } },
    ],
    [
      'every depth of logic',
      { $or: [{ $and: [{ artist: 'a1' }] }, { $nor: [{ artist: { $nin: ['a1'] } }] }] },
      { $or: [{ $and: [{ artist: artist1 }] }, { $nor: [{ artist: { $nin: [artist1] } }] }] },
    ],
    [
      'a typed member lends its class where the target is unknown',
      { curator: { $in: ['a1', artist1] } },
      { curator: { $in: [artist1, artist1] } },
    ],
    [
      'User is _User',
      { curator: 'User$u1' },
      { curator: { __type: 'Pointer', className: '_User', objectId: 'u1' } },
    ],
    ['no pointer at all', { artist: null }, { artist: null }],
  ])('%s becomes a typed pointer', (_, where, expected) => {
    expect(song(where)).toEqual(expected);
  });

  it('treats an undeclared column compared with pointers as a pointer column', () => {
    expect(note({ singer: { $in: ['a1', artist1] } })).toEqual({ singer: { $in: [artist1, artist1] } });
  });

  it.each<[string, unknown]>([
    ['$in', { curator: { $in: ['x1'] } }],
    ['$nin', { curator: { $nin: ['x1'] } }],
    ['two lending classes', { curator: { $in: ['x1', artist1, { ...artist1, className: 'Song' }] } }],
  ])('refuses a bare id of unknown class in %s, and passes it on only when lenient', (_, where) => {
    expect(catchRefusal(() => song(where))).toMatchObject({ code: 'pointer_shape_mismatch' });
    expect(song(where, { strictPointerShapes: false })).toMatchObject({ curator: {} });
  });

  it.each<[string, unknown]>([
    ['a typed pointer', { curator: { __type: 'Pointer', className: 'Vault', objectId: 'v' } }],
    ['a prefixed id', { curator: 'Vault$v' }],
    ['a member of a set', { curator: { $in: ['Vault$v'] } }],
    ['a pointer inside an array', { tags: [{ __type: 'Pointer', className: 'Vault', objectId: 'v' }] }],
    ['a relation value', { meta: { __type: 'Relation', className: 'Vault' } }],
  ])('refuses %s into a hidden class', (_, where) => {
    expect(catchRefusal(() => song(where))).toMatchObject({
      code: 'access_denied',
      details: { kind: 'hidden_class' },
    });
  });
});
