import { describe, expect, it } from 'vitest';
import { MASTER_PRINCIPALS, createPrincipals } from '#core';
import type { ClassSchema, FieldSchema, SchemaSnapshot } from '../model/class-schema.js';
import { music, catchRefusal, shopReach } from '../music.fixture.js';
import { governPipeline } from '../pipeline/govern-pipeline.js';
import { validatePipeline } from '../pipeline/validate-pipeline.js';
import { translateWhere } from '../where/translate-where.js';
import { AccessRights } from './class-permissions.js';

const FIELDS: Record<string, FieldSchema> = {
  owner: { type: 'Pointer', targetClass: '_User' },
  members: { type: 'Array' },
  holder: { type: 'Object' },
  title: { type: 'String' },
  user: { type: 'Pointer', targetClass: '_User' },
};

function rights(
  classes: Record<string, Record<string, unknown> | null>,
  principals = createPrincipals('ada', []),
) {
  const schemas = new Map(
    Object.entries(classes).map(([className, classLevelPermissions]): [string, ClassSchema] => [
      className,
      { className, fields: new Map(Object.entries(FIELDS)), indexes: [], classLevelPermissions },
    ]),
  );
  const snapshot: SchemaSnapshot = {
    get: (name) => schemas.get(name),
    classNames: () => [...schemas.keys()].sort(),
  };
  return new AccessRights(snapshot, principals);
}

const ada = { __type: 'Pointer', className: '_User', objectId: 'ada' };
const readable = { $readableBy: { principals: ['*', 'ada'] } };

describe('the rows of a class', () => {
  it('are all there for the master key', () => {
    expect(rights({ Note: { find: {} } }, MASTER_PRINCIPALS).rows('Note', 'find')).toBeNull();
  });

  it('are those whose rights name the caller', () => {
    expect(rights({ Note: null }).rows('Note', 'find')).toEqual(readable);
  });

  it('are those whose rights to write name the caller, when they are to be changed', () => {
    expect(rights({ Note: null }).rows('Note', 'update')).toEqual({
      $writableBy: { principals: ['*', 'ada'] },
    });
  });

  it.each([
    ['a pointer', ['owner'], { owner: ada }],
    ['a list', ['members'], { members: { $all: [ada] } }],
    ['an object', ['holder'], { holder: ada }],
    ['several fields', ['owner', 'members'], { $or: [{ owner: ada }, { members: { $all: [ada] } }] }],
    ['a field of a type that names nobody beside one that does', ['title', 'owner'], { owner: ada }],
    ['only such a field', ['title'], { objectId: { $in: [] } }],
    ['a field that does not exist', ['ghost'], { objectId: { $in: [] } }],
  ])('must name the user in %s', (_, pointerFields, condition) => {
    expect(rights({ Note: { find: { pointerFields } } }).rows('Note', 'find')).toEqual({
      $and: [readable, condition],
    });
  });

  it('are none where the class is closed, should anybody forget to ask', () => {
    expect(rights({ Note: { find: {} } }).rows('Note', 'find')).toEqual({ objectId: { $in: [] } });
    expect(rights({}).rows('Note', 'find')).toEqual({ objectId: { $in: [] } });
  });

  it('are the own sessions alone', () => {
    expect(rights({ _Session: null }).rows('_Session', 'find')).toEqual({ $and: [readable, { user: ada }] });
    const role = rights({ _Session: null }, createPrincipals(null, ['editors']));
    expect(role.rows('_Session', 'find')).toMatchObject({ $and: [{}, { objectId: { $in: [] } }] });
  });
});

describe('the class gate', () => {
  it.each([
    '_JobStatus',
    '_PushStatus',
    '_Hooks',
    '_GlobalConfig',
    '_GraphQLConfig',
    '_JobSchedule',
    '_Audience',
    '_Idempotency',
  ])('keeps %s for the master key', (className) => {
    const open = { [className]: { find: { '*': true }, get: { '*': true } } };
    expect(rights(open).gate(className, 'get')).toMatchObject({ details: { kind: 'clp_denied' } });
    expect(rights(open, MASTER_PRINCIPALS).gate(className, 'get')).toBeNull();
  });

  it('lets installations be read by id and never searched', () => {
    const open = rights({ _Installation: null });
    expect(open.gate('_Installation', 'get')).toBeNull();
    expect(open.gate('_Installation', 'find')?.code).toBe('access_denied');
    expect(open.gate('_Installation', 'count')?.code).toBe('access_denied');
  });

  it('describes a class that may be searched or read by id', () => {
    expect(rights({ Note: { find: {}, get: { '*': true } } }).gate('Note', 'describe')).toBeNull();
    expect(rights({ Note: { find: { '*': true }, get: {} } }).gate('Note', 'describe')).toBeNull();
    expect(rights({ Note: { find: {}, get: {} } }).gate('Note', 'describe')?.code).toBe('access_denied');
  });

  it('closes a class whose protected fields nobody could read', () => {
    expect(rights({ Note: { protectedFields: 'secret' } }).gate('Note', 'find')?.cause).toBe('malformed_clp');
  });

  it('gives the reason to the log and not to the agent', () => {
    const refusal = rights({ Note: { find: { 'role:chiefs': true } } }).gate('Note', 'find');
    expect(refusal?.message).toBe("Class 'Note' does not permit 'find' to this agent");
    expect(refusal?.cause).toBe('clp_denied');
  });
});

describe('an operator of rights', () => {
  const everyone = { principals: ['*', 'ada'] };
  const positions: [string, (rights: Record<string, unknown>) => unknown][] = [
    ['at the top', (rights) => rights],
    ['in a branch', (rights) => ({ $or: [{ title: 'x' }, rights] })],
    ['under a field', (rights) => ({ title: rights })],
    ['inside a value', (rights) => ({ meta: { a: [rights] } })],
    ['in a question', (rights) => ({ artist: { $inQuery: { className: 'Artist', where: rights } } })],
  ];

  it.each(positions)('cannot be written %s, in a constraint or a pipeline', (_, place) => {
    for (const name of ['$readableBy', '$writableBy']) {
      const where = place({ [name]: everyone });
      const inWhere = catchRefusal(() =>
        translateWhere(where, music('Song'), shopReach, { strictPointerShapes: true }),
      );
      expect(inWhere?.code).toBe('invalid_query');
      const scope = { access: music('Song'), where: {} };
      const inPipeline = catchRefusal(() =>
        governPipeline(validatePipeline([{ $match: where }]), scope, () => ({
          access: music('Artist'),
          where: {},
        })),
      );
      expect(['invalid_argument', 'invalid_query']).toContain(inPipeline?.code);
    }
  });
});
