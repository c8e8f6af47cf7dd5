import type { ClassSchema, FieldSchema } from '#policy';
import { ClassSchemas } from '../schema-store.js';

const pointer = (targetClass: string): FieldSchema => ({ type: 'Pointer', targetClass });

function schema(className: string, fields: Readonly<Record<string, FieldSchema>>): ClassSchema {
  const built: [string, FieldSchema][] = [
    ['objectId', { type: 'String' }],
    ...Object.entries(fields),
    ['createdAt', { type: 'Date' }],
    ['updatedAt', { type: 'Date' }],
    ['ACL', { type: 'ACL' }],
  ];
  return { className, fields: new Map(built), indexes: [], classLevelPermissions: null };
}

/** Classes with one field of every type, for tests of the translators. */
export const MUSIC = new ClassSchemas([
  schema('Artist', { name: { type: 'String' }, home: { type: 'GeoPoint' }, label: pointer('Label') }),
  schema('Label', { name: { type: 'String' }, parseReference: { type: 'String' } }),
  schema('Album', {
    title: { type: 'String' },
    artist: pointer('Artist'),
    released: { type: 'Date' },
    price: { type: 'Number' },
    tags: { type: 'Array' },
    guests: { type: 'Array' },
    cover: { type: 'File' },
    extra: { type: 'Object' },
    thumbnail: { type: 'Bytes' },
    region: { type: 'Polygon' },
    fans: { type: 'Relation', targetClass: '_User' },
    anything: { type: 'Pointer' },
  }),
  schema('_User', { username: { type: 'String' } }),
]);
