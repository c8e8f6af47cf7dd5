import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, type Identity, MASTER, Refused, McpRequest } from '#core';
import { AgentScopes, type ClassLevelPermissions, compilePolicy, Policies } from '#policy';
import { MUSIC } from '../contracts/music-classes.js';
import { PrincipalDirectory } from '../identity/principal-directory.js';
import { PrincipalResolver } from '../identity/principal-resolver.js';
import { RecordReader } from '../record-adapters.js';
import { type FindQuery } from '../record-store.js';
import { ClassSchemas, SchemaCatalogue } from '../schema-store.js';
import { GovernedRecordsSource } from './governed-sources.js';

const unasked = (): Promise<never> => Promise.reject(new Error('the store was asked'));

class EmptyStore extends RecordReader {
  readonly found: FindQuery[] = [];
  find = (query: FindQuery) => {
    this.found.push(query);
    return Promise.resolve([]);
  };
  count = unasked;
  aggregate = unasked;
  related = unasked;
  explain = unasked;
}

class Strangers extends PrincipalDirectory {
  ownerOfSession = () => Promise.resolve(null);
  findUser(): Promise<null> {
    return Promise.resolve(null);
  }

  rolesOfUser = () => Promise.resolve([]);
  rolesOfRole = (name: string) => Promise.resolve([name]);
}

class Catalogue extends SchemaCatalogue {
  constructor(private readonly classLevelPermissions: ClassLevelPermissions) {
    super();
  }
  snapshot = () =>
    Promise.resolve(
      new ClassSchemas(
        MUSIC.classNames().flatMap((name) => {
          const schema = MUSIC.get(name);
          return schema ? [{ ...schema, classLevelPermissions: this.classLevelPermissions }] : [];
        }),
      ),
    );
  listIndexes = () => Promise.resolve([]);
  invalidate = () => undefined;
}

function album(identity: Identity = MASTER, permissions: ClassLevelPermissions = {}) {
  const store = new EmptyStore();
  const source = new GovernedRecordsSource(
    new AgentScopes(
      new Policies(compilePolicy({ unlistedClasses: 'allow', classes: { Artist: { hidden: true } } }).policy),
    ),
    store,
    new Catalogue(permissions),
    new PrincipalResolver(new Strangers()),
  );
  const definition = compileAgentDefinition('test');
  const agent = new Agent({ definition, identity, principal: 'test' });
  const records = source.for(new McpRequest(agent));
  return { store, records };
}

describe('a column that leads into a class the agent may not know', () => {
  const { records } = album();
  it.each([
    ['ordered by', () => records.find('Album', { order: 'artist' })],
    ['compared with', () => records.find('Album', { where: { artist: 'x' } })],
    ['included', () => records.find('Album', { include: ['artist'] })],
    [
      'joined by',
      () =>
        records.aggregate('Album', [
          { $lookup: { from: 'Album', localField: 'artist', foreignField: 'objectId', as: 'x' } },
        ]),
    ],
    ['matched by', () => records.aggregate('Album', [{ $match: { artist: 'x' } }])],
  ])('is not %s, and the refusal names the column alone', async (_, asked) => {
    const refused: unknown = await asked().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Refused);
    const { refusal } = refused as Refused;
    expect(refusal).toMatchObject({ code: 'access_denied', details: { kind: 'hidden_class' } });
    expect(JSON.stringify(refusal)).toContain('artist');
    expect(JSON.stringify(refusal)).not.toContain('Artist');
  });
});

describe('samples', () => {
  const open = { find: { '*': true } };
  const ada: Identity = { kind: 'aclUser', userId: 'ada' };

  it('are the newest rows', async () => {
    const { store, records } = album(ada, open);
    await records.samples('Album', 5);
    expect(store.found[0]?.order).toEqual([{ field: 'createdAt', descending: true }]);
  });

  it('are any rows where dates are protected: their order would show them', async () => {
    const permissions = { ...open, protectedFields: { '*': ['createdAt'] } };
    const { store, records } = album(ada, permissions);
    await records.samples('Album', 5);
    expect(store.found[0]?.order).toEqual([]);
  });

  it('are known beforehand to be refused where rows may not be searched', async () => {
    const { records } = album(ada, { find: {}, count: {}, get: { '*': true } });
    const known = await records.describe('Album');
    expect([...known.reads]).toEqual(['get']);
  });
});
