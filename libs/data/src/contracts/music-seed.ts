const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const date = (iso: string) => ({ __type: 'Date', iso });
const field = (type: string) => ({ type });
const to = (targetClass: string) => ({ type: 'Pointer', targetClass });

const album = (objectId: string, artist: string, released: string, price: number, more: object = {}) => ({
  objectId,
  title: `Album ${objectId}`,
  artist: pointer('Artist', artist),
  released: date(`${released}T00:00:00.000Z`),
  price,
  createdAt: `${released}T12:00:00.000Z`,
  updatedAt: `${released}T12:00:00.000Z`,
  ...more,
});

/** A bcrypt hash: hashing for every case would dominate the run time of the suite. */
const HASH = '$2b$10$57VZfh7Sgkyitq5iNO4jReNP0fDtQQY4Me.smMA01c.8lGIRFHKhu';

/** The initial data of every contract suite: two labels, three artists, six albums, two users. */
export const MUSIC_SEED = {
  schemas: [
    {
      className: 'Album',
      fields: {
        title: { type: 'String', required: true },
        artist: to('Artist'),
        released: field('Date'),
        price: field('Number'),
        tags: field('Array'),
        guests: field('Array'),
        cover: field('File'),
        extra: field('Object'),
        thumbnail: field('Bytes'),
        state: { type: 'String', defaultValue: 'draft' },
        fans: { type: 'Relation', targetClass: '_User' },
      },
      classLevelPermissions: { find: { '*': true }, get: { '*': true }, protectedFields: { '*': ['price'] } },
      indexes: { byArtist: { artist: 1, released: -1 }, words: { title: 'text' } },
    },
    {
      className: 'Artist',
      fields: { name: field('String'), home: field('GeoPoint'), label: to('Label'), mentor: to('Artist') },
      indexes: { byHome: { home: '2dsphere' } },
    },
    { className: 'Label', fields: { name: field('String'), secret: field('String') } },
  ],
  users: [
    { objectId: 'ada', username: 'ada', passwordHash: HASH, email: 'ada@example.com' },
    { objectId: 'bob', username: 'bob' },
  ],
  objects: {
    Label: [
      { objectId: 'north', name: 'North', secret: 'n' },
      { objectId: 'south', name: 'South', secret: 's' },
    ],
    Artist: [
      {
        objectId: 'ivy',
        name: 'Ivy Row',
        label: pointer('Label', 'north'),
        home: { __type: 'GeoPoint', latitude: 48.2, longitude: 16.4 },
      },
      {
        objectId: 'oak',
        name: 'Oak Lane',
        label: pointer('Label', 'south'),
        mentor: pointer('Artist', 'ivy'),
        home: { __type: 'GeoPoint', latitude: 47.1, longitude: 15.4 },
      },
      { objectId: 'elm', name: 'Elm Street', mentor: pointer('Artist', 'gone') },
    ],
    Album: [
      album('a1', 'ivy', '2024-01-10', 10, {
        tags: ['live', 'folk'],
        guests: [pointer('Artist', 'oak'), pointer('Artist', 'gone')],
        extra: { discs: 2, mastered: date('2023-12-01T00:00:00.000Z'), by: pointer('Artist', 'elm') },
      }),
      album('a2', 'ivy', '2024-06-01', 12, { tags: ['folk'], cover: { __type: 'File', name: 'a2.png' } }),
      album('a3', 'oak', '2025-02-02', 8, { tags: [], ACL: { ada: { read: true, write: true } } }),
      album('a4', 'oak', '2025-03-03', 20, {
        thumbnail: { __type: 'Bytes', base64: 'AQID' },
        fans: { __op: 'AddRelation', objects: [pointer('_User', 'ada'), pointer('_User', 'bob')] },
      }),
      album('a5', 'elm', '2025-12-31', 8, { extra: { discs: 1 } }),
      { objectId: 'a6', title: 'Nobody', artist: null, price: null },
    ],
  },
};
