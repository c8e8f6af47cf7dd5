import { compareSync } from 'bcryptjs';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { seedCollections } from './load-seed.js';
import { parseSeed } from './parse-seed.js';

const NOW = new Date('2026-02-03T04:05:06.000Z');
const collections = async (json: unknown) => {
  const made = await seedCollections(parseSeed(json), NOW);
  return new Map([...made.collections, made.schema].map((content) => [content.name, content]));
};

describe('the seed of the demo', () => {
  // The build turns it into a data file once (tools/build/demo-data.mjs).
  it('gives the same documents whenever it is loaded', async () => {
    const seed = parseSeed(JSON.parse(readFileSync('demo/seed.json', 'utf8')));
    const later = new Date('2031-01-01T00:00:00.000Z');
    expect(await seedCollections(seed, later)).toEqual(await seedCollections(seed, NOW));
  });
});

describe('a seed', () => {
  it('of nothing makes only the classes every Parse database has', async () => {
    const made = await collections({});
    expect([...made.keys()]).toEqual(['_User', '_Role', '_Session', '_SCHEMA']);
  });

  it('gives fields that only rows mention the type of their values', async () => {
    const made = await collections({
      objects: {
        Post: [
          { title: null },
          {
            title: 'a',
            author: { __type: 'Pointer', className: 'User', objectId: 'u' },
            at: { __type: 'GeoPoint', latitude: 1, longitude: 2 },
            likes: {
              __op: 'AddRelation',
              objects: [{ __type: 'Pointer', className: '_User', objectId: 'u' }],
            },
          },
        ],
      },
    });
    expect(made.get('_SCHEMA')?.documents.at(-1)).toMatchObject({
      _id: 'Post',
      title: 'string',
      author: '*User',
      at: 'geopoint',
      likes: 'relation<_User>',
    });
  });

  it('makes the same ids every time', async () => {
    const json = { objects: { Post: [{ title: 'a' }, { title: 'b' }] } };
    const ids = async () =>
      (await collections(json)).get('Post')?.documents.map((document) => document['_id']);
    const first = await ids();
    expect(new Set(first).size).toBe(2);
    expect(first?.every((id) => /^[A-Za-z0-9]{10}$/.test(String(id)))).toBe(true);
    expect(await ids()).toEqual(first);
  });

  it('stores rows, users, roles, sessions and relations as Parse does', async () => {
    const made = await collections({
      schemas: [
        {
          className: 'Post',
          fields: {
            title: { type: 'String', required: true, defaultValue: 'untitled' },
            author: { type: 'Pointer', targetClass: '_User' },
          },
          classLevelPermissions: { find: { '*': true } },
          indexes: { byAuthor: { author: 1, createdAt: -1 } },
        },
      ],
      users: [{ objectId: 'u1', username: 'ada', password: 'pass word', email: 'ada@example.com' }],
      roles: [
        { objectId: 'r1', name: 'editors', users: ['ada'] },
        { objectId: 'r2', name: 'chiefs', roles: ['editors'] },
      ],
      sessions: [
        { objectId: 's1', sessionToken: 'r:abc', user: 'u1', expiresAt: '2099-01-01T00:00:00.000Z' },
      ],
      objects: {
        Post: [
          {
            objectId: 'p1',
            author: { __type: 'Pointer', className: '_User', objectId: 'u1' },
            createdAt: '2025-01-01T00:00:00.000Z',
          },
          {
            objectId: 'p2',
            fans: {
              __op: 'AddRelation',
              objects: [{ __type: 'Pointer', className: '_User', objectId: 'u1' }],
            },
          },
        ],
      },
    });
    const [user] = made.get('_User')?.documents ?? [];
    expect(user).toMatchObject({
      _id: 'u1',
      username: 'ada',
      email: 'ada@example.com',
      _rperm: ['u1'],
      _wperm: ['u1'],
    });
    expect(compareSync('pass word', user?.['_hashed_password'])).toBe(true);
    expect(user).not.toHaveProperty('password');
    expect(made.get('_Role')?.documents).toMatchObject([
      { _id: 'r1', name: 'editors', _rperm: [] },
      { _id: 'r2', name: 'chiefs' },
    ]);
    expect(made.get('_Join:users:_Role')?.documents).toEqual([{ owningId: 'r1', relatedId: 'u1' }]);
    expect(made.get('_Join:roles:_Role')?.documents).toEqual([{ owningId: 'r2', relatedId: 'r1' }]);
    expect(made.get('_Join:fans:Post')?.documents).toEqual([{ owningId: 'p2', relatedId: 'u1' }]);
    expect(made.get('_Session')?.documents).toEqual([
      {
        _id: 's1',
        _p_user: '_User$u1',
        _session_token: 'r:abc',
        createdWith: { action: 'login', authProvider: 'password' },
        expiresAt: new Date('2099-01-01'),
        _created_at: NOW,
        _updated_at: NOW,
      },
    ]);
    expect(made.get('Post')?.documents).toEqual([
      {
        _id: 'p1',
        title: 'untitled',
        _p_author: '_User$u1',
        _created_at: new Date('2025-01-01'),
        _updated_at: new Date('2025-01-01'),
      },
      { _id: 'p2', title: 'untitled', _created_at: NOW, _updated_at: NOW },
    ]);
    expect(made.get('Post')?.indexes).toEqual([{ name: 'byAuthor', key: { _p_author: 1, _created_at: -1 } }]);
    const unique = { unique: true, sparse: true, background: true };
    expect(made.get('_User')?.indexes).toEqual([
      { name: 'username_1', key: { username: 1 }, ...unique },
      { name: 'email_1', key: { email: 1 }, ...unique },
    ]);
    expect(made.get('_SCHEMA')?.documents.find((row) => row['_id'] === 'Post')).toEqual({
      _id: 'Post',
      objectId: 'string',
      createdAt: 'date',
      updatedAt: 'date',
      title: 'string',
      author: '*_User',
      fans: 'relation<_User>',
      _metadata: {
        fields_options: { title: { required: true, defaultValue: 'untitled' } },
        class_permissions: { find: { '*': true } },
        indexes: { _id_: { _id: 1 }, byAuthor: { _p_author: 1, _created_at: -1 } },
      },
    });
  });

  it('keeps a password hash as it is', async () => {
    const passwordHash = `$2b$10$${'a'.repeat(53)}`;
    const made = await collections({ users: [{ username: 'ada', passwordHash }] });
    expect(made.get('_User')?.documents[0]?.['_hashed_password']).toBe(passwordHash);
  });
});
