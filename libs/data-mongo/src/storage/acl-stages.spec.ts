import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPrincipals, MASTER_PRINCIPALS, strictPrincipals } from '#core';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { MongoClient } from 'mongodb';
import { aclReadMatchStage, aclWriteMatchStage } from './acl-stages.js';

let server: EmbeddedMongo;
let client: MongoClient;
beforeAll(async () => {
  server = await EmbeddedMongo.start();
  client = new MongoClient(server.uri);
  await client
    .db('acl')
    .collection<{ _id: string }>('Note')
    .insertMany([
      { _id: 'public' },
      { _id: 'everybody', _rperm: ['*'], _wperm: [] },
      { _id: 'ann', _rperm: ['ann'], _wperm: ['ann'] },
      { _id: 'staff', _rperm: ['ann', 'role:staff'], _wperm: ['role:staff'] },
      { _id: 'nobody', _rperm: [], _wperm: [] },
    ] as { _id: string }[]);
});
afterAll(async () => {
  await client.close();
  await server.close();
});

const ids = async (stage: object | null) =>
  (
    await client
      .db('acl')
      .collection('Note')
      .aggregate(stage ? [stage] : [])
      .toArray()
  ).map(({ _id }) => String(_id));

describe("the stages of a handler's own query", () => {
  it.each([
    ['a user', createPrincipals('ann', []), ['public', 'everybody', 'ann', 'staff'], ['public', 'ann']],
    [
      'a user with a role',
      createPrincipals('bob', ['staff']),
      ['public', 'everybody', 'staff'],
      ['public', 'staff'],
    ],
    ['a role without public rows', strictPrincipals(['staff']), ['public', 'staff'], ['public', 'staff']],
  ])(
    'admit the rows that %s may read, and those that it may change',
    async (_, principals, read, written) => {
      expect(await ids(aclReadMatchStage(principals))).toEqual(read);
      expect(await ids(aclWriteMatchStage(principals))).toEqual(written);
    },
  );

  it('are none for the master key', () => {
    expect(aclReadMatchStage(MASTER_PRINCIPALS)).toBeNull();
    expect(aclWriteMatchStage(MASTER_PRINCIPALS)).toBeNull();
  });
});
