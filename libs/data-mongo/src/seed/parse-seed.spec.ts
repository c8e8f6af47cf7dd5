import { describe, expect, it } from 'vitest';
import { parseSeed } from './parse-seed.js';
import { SeedError } from './seed.js';

const faultsOf = (json: unknown): readonly string[] => {
  try {
    parseSeed(json);
    return [];
  } catch (error) {
    if (error instanceof SeedError) return error.faults;
    throw error;
  }
};

describe('a seed with errors', () => {
  it('is answered with all of them at once, each with its path', () => {
    const faults = faultsOf({
      schema: [],
      schemas: [
        { className: 'Po st', fields: {} },
        { className: 'Post', fields: { title: { type: 'Text' }, author: { type: 'Pointer' } }, more: 1 },
        { className: 'Post', indexes: { byTitle: { title: 'up' } }, classLevelPermissions: { look: {} } },
      ],
      users: [
        { password: 'x' },
        { username: 'ada', objectId: 'a b' },
        { username: 'ada', passwordHash: 'secret' },
      ],
      roles: [{ name: 'editors', users: ['nobody'], roles: ['admins'] }],
      sessions: [{ sessionToken: 'r:1', user: 'nobody', expiresAt: 'later' }],
      objects: { Post: [{ objectId: 'p1' }, { objectId: 'p1' }, 7], _User: [] },
      collections: { repairs: [{ number: 1 }, 7], parts: { a: 1 } },
    });
    expect(faults).toEqual([
      'seed.schema: unknown key; known: schemas, users, roles, sessions, objects, collections',
      'collections.repairs[1]: must be an object',
      'collections.parts: must be a list',
      'schemas[0].className: must be a class name',
      'schemas[1].more: unknown key; known: className, fields, classLevelPermissions, indexes',
      expect.stringMatching(/^schemas\[1\]\.fields\.title\.type: must be one of String/),
      'schemas[1].fields.author.targetClass: must name the class pointed at',
      "schemas[2].className: 'Post' is declared twice",
      expect.stringMatching(/^schemas\[2\]\.classLevelPermissions\.look: unknown key/),
      'schemas[2].indexes.byTitle.title: must be 1, -1, text, 2d, 2dsphere or hashed',
      'users[0].username: must be text',
      'users[1].objectId: must be up to 32 letters, digits, _ or -',
      "users[2].username: 'ada' is used twice",
      'users[2].passwordHash: must be a bcrypt hash',
      "roles[0].users[0]: no user 'nobody' in this seed",
      "roles[0].roles[0]: no role 'admins' in this seed",
      "sessions[0].user: no user 'nobody' in this seed",
      'sessions[0].expiresAt: must be an ISO 8601 date',
      "objects.Post[1].objectId: 'p1' is used twice",
      'objects.Post[2]: must be an object',
      "objects._User: belongs under 'users'",
      'schemas.Post.indexes.byTitle.title: no such field',
    ]);
  });

  const cases: [string, unknown, string][] = [
    ['anything but an object', [], 'seed: must be an object'],
    [
      'a value of another type than declared',
      { schemas: [{ className: 'A', fields: { n: { type: 'Number' } } }], objects: { A: [{ n: 'one' }] } },
      "objects.A[0].n: is a String where 'n' of A is a Number",
    ],
    [
      'values of two types in one undeclared field',
      { objects: { A: [{ n: 1 }, { n: [1] }] } },
      "objects.A[1].n: is a Array where 'n' of A is a Number",
    ],
    [
      'a pointer to another class than before',
      {
        objects: {
          A: [
            { p: { __type: 'Pointer', className: 'B', objectId: 'b' } },
            { p: { __type: 'Pointer', className: 'C', objectId: 'c' } },
          ],
        },
      },
      "objects.A[1].p: is a Pointer<C> where 'p' of A is a Pointer<B>",
    ],
    [
      'a date that is none',
      { objects: { A: [{ d: { __type: 'Date', iso: 'x' } }] } },
      'objects.A[0].d: not an ISO 8601 date',
    ],
    [
      'a bad creation date',
      { objects: { A: [{ createdAt: 'x' }] } },
      'objects.A[0].createdAt: must be an ISO 8601 date',
    ],
    [
      'an ACL with unknown rights',
      { objects: { A: [{ ACL: { '*': { own: true } } }] } },
      "objects.A[0].ACL: '*' may hold only boolean read and write",
    ],
    [
      'a field Parse keeps for itself',
      { objects: { A: [{ _rperm: ['*'] }] } },
      'objects.A[0]._rperm: is not a field name',
    ],
    ['login data', { users: [{ username: 'a', authData: {} }] }, 'users[0].authData: cannot be seeded'],
    [
      'another operation than AddRelation',
      { objects: { A: [{ r: { __op: 'Increment', amount: 1 } }] } },
      'objects.A[0].r: must be an AddRelation of pointers',
    ],
    [
      'a missing required field',
      {
        schemas: [{ className: 'A', fields: { n: { type: 'Number', required: true } } }],
        objects: { A: [{}] },
      },
      'objects.A[0].n: is required',
    ],
    [
      'an operator inside an object',
      { objects: { A: [{ o: { $gt: 1 } }] } },
      "objects.A[0].o.$gt: nested keys must not contain '$' or '.'",
    ],
  ];
  it.each(cases)('is refused for %s', (_title, json, fault) => {
    expect(faultsOf(json)).toEqual([fault]);
  });
});
