import { MongoClient, MongoServerError } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MUSIC_SEED, storeErrorCode, unhurried } from '#data/contracts';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { MongoConnection } from './connection/mongo-connection.js';
import { asSearchOperation } from './errors.js';
import { MongoSchemaCatalogue } from './schema/mongo-schema-catalogue.js';
import { MongoRecordSearcher } from './search/mongo-record-searcher.js';
import { loadSeed } from './seed/load-seed.js';
import { parseSeed } from './seed/parse-seed.js';

let server: EmbeddedMongo;
let admin: MongoClient;
let connection: MongoConnection;
let searcher: MongoRecordSearcher;

beforeAll(async () => {
  server = await EmbeddedMongo.start({ search: false });
  admin = await MongoClient.connect(server.uri);
  connection = new MongoConnection({ uri: server.uri, database: 'plain' });
  await loadSeed(connection, parseSeed(MUSIC_SEED));
  searcher = new MongoRecordSearcher(connection, new MongoSchemaCatalogue(connection));
});
afterAll(async () => {
  await connection.close();
  await admin.close();
  await server.close();
});

const match = { kind: 'everything' } as const;
const search = () =>
  searcher.text({ className: 'Album', index: 'default', match, where: {}, limit: 3 }, unhurried());

describe('a database without search', () => {
  it('is known by its own answer to every kind of search', async () => {
    const nearest = {
      className: 'Album',
      index: 'v',
      field: 'v',
      vector: [1],
      filter: {},
      where: {},
      candidates: 9,
      limit: 1,
    };
    const facets = new Map([['a', { type: 'string', path: 'title' } as const]]);
    const all = [
      search(),
      searcher.nearest(nearest, unhurried()),
      searcher.facets({ className: 'Album', index: 'default', match, facets, where: {} }, unhurried()),
    ];
    for (const one of all) expect(await storeErrorCode(one)).toBe('search_not_configured');
  });

  it.each([
    [31082, 'search_not_configured'],
    [40324, 'search_not_configured'],
    [6047401, 'search_not_configured'],
    [27, 'search_index_missing'],
    [50, 'timeout'],
    [13, 'failed'],
    [8, 'failed'],
    [11600, 'unavailable'],
    [2, 'invalid_query'],
  ])('is not guessed from anything else: an answer with code %i is %s', async (errorCode, code) => {
    const data = { failCommands: ['aggregate'], errorCode };
    await admin.db('admin').command({ configureFailPoint: 'failCommand', mode: { times: 2 }, data });
    expect(await storeErrorCode(search())).toBe(code);
    await admin.db('admin').command({ configureFailPoint: 'failCommand', mode: 'off' });
  });
});

describe('what the search process says', () => {
  const told = (message: string) =>
    storeErrorCode(
      asSearchOperation(undefined, () => Promise.reject(new MongoServerError({ code: 8, message }))),
    );

  it.each([
    ['PlanExecutor error :: caused by :: "text.path" is required', 'search_invalid'],
    ['vector field is indexed with 3 dimensions but queried with 2', 'search_invalid'],
    ['index vector_index not found', 'search_index_missing'],
    ['the search process ran out of memory', 'failed'],
  ])('%s is %s', async (message, code) => {
    expect(await told(message)).toBe(code);
  });
});
