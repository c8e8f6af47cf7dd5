import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, type Identity, MASTER, McpRequest } from '#core';
import { AgentScopes, compilePolicy, Policies } from '#policy';
import { MUSIC } from '../contracts/music-classes.js';
import { PrincipalDirectory } from '../identity/principal-directory.js';
import { PrincipalResolver } from '../identity/principal-resolver.js';
import { RecordReader } from '../record-adapters.js';
import { ClassSchemas, SchemaCatalogue } from '../schema-store.js';
import { GovernedRecordsSource } from './governed-sources.js';

const touched = (): Promise<never> => Promise.reject(new Error('the store was asked'));

/** A store that every rule must keep calls from: a call of it fails the test. */
class ForbiddenStore extends RecordReader {
  find = touched;
  count = touched;
  aggregate = touched;
  related = touched;
  explain = touched;
}

/** A class with a column for the tenant. */
const CLASSES = new ClassSchemas(
  MUSIC.classNames().flatMap((name) => {
    const schema = MUSIC.get(name);
    return schema ? [{ ...schema, fields: new Map([...schema.fields, ['org', { type: 'String' }]]) }] : [];
  }),
);

class MusicCatalogue extends SchemaCatalogue {
  snapshot = () => Promise.resolve(CLASSES);
  listIndexes = () => Promise.resolve([]);
  invalidate = () => undefined;
}

/** A directory in which no user holds a role. */
class Strangers extends PrincipalDirectory {
  ownerOfSession = () => Promise.resolve(null);
  findUser(): Promise<null> {
    return Promise.resolve(null);
  }

  rolesOfUser = () => Promise.resolve([]);
  rolesOfRole = (name: string) => Promise.resolve([name]);
}

const ALBUMS = { artist: { $inQuery: { className: 'Artist', where: { name: 'Ivy' } } } };
const { policy } = compilePolicy({
  unlistedClasses: 'allow',
  classes: {
    Album: {
      fields: ['title', 'artist', 'released', 'fans'],
      canonicalFilter: ALBUMS,
      tenantScope: { field: 'org' },
    },
    Label: { hidden: true },
  },
});

function records(identity: Identity = MASTER, tenantId: string | null = 'north') {
  const definition = compileAgentDefinition('test', { filters: { Album: ALBUMS } });
  const agent = new Agent({ definition, identity, principal: 'test', tenantId });
  const source = new GovernedRecordsSource(
    new AgentScopes(new Policies(policy)),
    new ForbiddenStore(),
    new MusicCatalogue(),
    new PrincipalResolver(new Strangers()),
  );
  return source.for(new McpRequest(agent));
}

const GROUPS = [{ $group: { _id: '$artist', n: { $sum: 1 } } }];
const OWNER = { __type: 'Pointer', className: 'Album', objectId: 'a1' };

describe('a checked aggregation', () => {
  it.each<[string, object]>([
    ['a plain constraint', { title: 'x' }],
    ['a question to another class', ALBUMS],
    ['no constraint', {}],
  ])('reads nothing for %s, though filters ask other classes', async (_, where) => {
    await expect(records().checkAggregate('Album', GROUPS, { where })).resolves.toBeUndefined();
  });

  it.each<[string, unknown, unknown, object, object]>([
    ['a hidden class', 'Label', GROUPS, {}, { details: { kind: 'hidden_class' } }],
    ['no class at all', 'Nowhere', GROUPS, {}, { code: 'invalid_argument' }],
    [
      'a column outside the allowlist',
      'Album',
      [{ $group: { _id: '$price' } }],
      {},
      { details: { kind: 'field_denied' } },
    ],
    ['such a column in the constraint', 'Album', GROUPS, { price: 1 }, { details: { kind: 'field_denied' } }],
    [
      'a join with a hidden class',
      'Album',
      [{ $unionWith: 'Label' }],
      {},
      { details: { kind: 'hidden_class' } },
    ],
    ['another tenant', 'Album', GROUPS, { org: 'south' }, { details: { kind: 'tenant_scope' } }],
    ['a stage that writes', 'Album', [{ $out: 'x' }], {}, { code: 'security_blocked' }],
    ['an unknown operator', 'Album', GROUPS, { title: { $size: 1 } }, { code: 'invalid_query' }],
  ])('is refused for %s before anything is read', async (_, className, pipeline, where, refusal) => {
    await expect(records().checkAggregate(className, pipeline, { where })).rejects.toMatchObject({ refusal });
  });

  it('never asks the store, whatever is asked of it', async () => {
    const field = fc.constantFrom(
      'title',
      'artist',
      'price',
      'released',
      '_rperm',
      'org',
      '$or',
      '$relatedTo',
      '$inQuery',
    );
    const tree = fc.letrec<{ node: unknown }>((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom<unknown>(
          'x',
          1,
          null,
          OWNER,
          ALBUMS.artist,
          { object: OWNER, key: 'fans' },
          'Label$l1',
        ),
        fc.array(tie('node'), { maxLength: 2 }),
        fc.dictionary(field, tie('node'), { maxKeys: 2 }),
      ),
    })).node;
    await fc.assert(
      fc.asyncProperty(tree, tree, async (where, id) => {
        const fault = await records()
          .checkAggregate('Album', [{ $group: { _id: id } }], { where })
          .then(
            () => null,
            (error: unknown) => error,
          );
        if (fault !== null) expect(fault).toHaveProperty('refusal');
      }),
    );
  });
});

describe('admission to a class', () => {
  it('returns what the agent may know of it, and reads nothing', async () => {
    const known = await records().admit('Album');
    expect(known.fields).toEqual([
      'objectId',
      'title',
      'artist',
      'released',
      'fans',
      'createdAt',
      'updatedAt',
    ]);
  });

  it('is refused to an agent without a tenant, after the class gate', async () => {
    const unbound = records(MASTER, null);
    await expect(unbound.admit('Album')).rejects.toMatchObject({
      refusal: { details: { kind: 'tenant_scope' } },
    });
    await expect(unbound.admit('Label')).rejects.toMatchObject({
      refusal: { details: { kind: 'hidden_class' } },
    });
  });
});

describe('an explanation', () => {
  it.each<[string, Identity]>([
    ['a user', { kind: 'aclUser', userId: 'u1' }],
    ['a role', { kind: 'aclRole', role: 'editors' }],
  ])('is refused to an agent that acts as %s, whose rights the plan would show', async (_, identity) => {
    await expect(records(identity).explain('Artist')).rejects.toMatchObject({
      refusal: { code: 'invalid_argument' },
    });
  });
});
