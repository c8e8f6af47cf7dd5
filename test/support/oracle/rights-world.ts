import type { SeededRandom } from './seeded-random.js';

export const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });

/** A class of the world and what questions about it need to know. */
export interface WorldClass {
  readonly name: string;
  /** The class its `folder` points to, and whose `notes` relation leads to it. */
  readonly folderClass: string;
  readonly ids: readonly string[];
  readonly folderIds: readonly string[];
  /** Parse Server forgets columns of later answers once `keys` met a rule per row. */
  readonly mayAskKeys: boolean;
}

/** Users, roles that inherit in any direction, classes with random permissions, rows with random rights. */
export interface World {
  readonly seed: unknown;
  readonly users: readonly { readonly id: string; readonly session: string }[];
  readonly classes: readonly WorldClass[];
  /** Other permissions of a class, as random as the first; undefined: none are stored. */
  permissionsAnew(one: WorldClass): unknown;
}

const OPERATIONS = ['find', 'count', 'get'] as const;
const OWNER_FIELDS = ['owner', 'members'];
/** Columns that permissions may hide. */
const HIDEABLE =
  'secret SECRET sECRET rank title Title owner folder in_folder members updatedAt meta_data'.split(' ');
const USER_COLUMNS = ['email', 'phone', 'nick'];

export function makeWorld(random: SeededRandom, pairs: number): World {
  const userIds = Array.from({ length: 8 }, (_, index) => `user${index}`);
  const roleNames = Array.from({ length: 9 }, (_, index) => `role${index}`);
  const principals = [...userIds, ...roleNames.map((name) => `role:${name}`)];
  const classes = Array.from({ length: pairs }, (_, index): WorldClass => {
    const name = `Note${index}`;
    return {
      name,
      folderClass: `Folder${index}`,
      ids: Array.from({ length: 14 }, (__, row) => `${name.toLowerCase()}r${row}`),
      folderIds: Array.from({ length: 5 }, (__, row) => `folder${index}r${row}`),
      mayAskKeys: random.chance(0.5),
    };
  });
  const chance = new Chance(random, userIds, principals);
  return {
    users: userIds.map((id) => ({ id, session: `r:${id}-session` })),
    classes,
    permissionsAnew: (one) => notePermissions(one, chance),
    seed: {
      schemas: [
        {
          className: '_User',
          fields: { phone: { type: 'String' }, nick: { type: 'String' } },
          classLevelPermissions: chance.permissions([], USER_COLUMNS, true),
        },
        ...classes.flatMap((one) => schemasOf(one, chance)),
      ],
      users: userIds.map((objectId) => ({
        objectId,
        username: objectId,
        email: `${objectId}@example.com`,
        phone: `+${random.upTo(9999)}`,
        nick: `nick of ${objectId}`,
        ...chance.acl(),
      })),
      roles: roleNames.map((name) => ({
        objectId: `id${name}`,
        name,
        users: random.some(userIds, 0.2),
        roles: random.some(roleNames, 0.2),
        ACL: {},
      })),
      sessions: userIds.map((user) => ({
        sessionToken: `r:${user}-session`,
        user,
        expiresAt: '2099-01-01T00:00:00.000Z',
      })),
      objects: Object.fromEntries(classes.flatMap((one) => rowsOf(one, chance))),
    },
  };
}

function notePermissions({ mayAskKeys }: WorldClass, chance: Chance): unknown {
  return chance.permissions(OWNER_FIELDS, HIDEABLE, !mayAskKeys);
}

function schemasOf(one: WorldClass, chance: Chance): unknown[] {
  const { name, folderClass, mayAskKeys } = one;
  const user = { type: 'Pointer', targetClass: '_User' };
  return [
    {
      className: name,
      fields: {
        title: { type: 'String' },
        Title: { type: 'String' },
        rank: { type: 'Number' },
        secret: { type: 'String' },
        SECRET: { type: 'String' },
        sECRET: { type: 'String' },
        owner: user,
        members: { type: 'Array' },
        meta_data: { type: 'Object' },
        photo: { type: 'File' },
        pages: { type: 'Array' },
        folder: { type: 'Pointer', targetClass: folderClass },
        in_folder: { type: 'Pointer', targetClass: folderClass },
      },
      classLevelPermissions: notePermissions(one, chance),
    },
    {
      className: folderClass,
      fields: {
        label: { type: 'String' },
        secret: { type: 'String' },
        owner: user,
        photo: { type: 'File' },
        extra: { type: 'Object' },
        notes: { type: 'Relation', targetClass: name },
      },
      classLevelPermissions: chance.permissions(
        ['owner'],
        ['label', 'secret', 'owner', 'notes'],
        !mayAskKeys,
      ),
    },
  ];
}

function rowsOf({ name, folderClass, ids, folderIds }: WorldClass, chance: Chance): [string, unknown[]][] {
  const { random } = chance;
  const notes = ids.map((objectId, index) => ({
    objectId,
    title: `Title ${random.upTo(4)}`,
    Title: `Title ${random.upTo(4)}`,
    rank: index,
    secret: `secret ${random.upTo(4)}`,
    SECRET: `secret ${random.upTo(4)}`,
    sECRET: `secret ${random.upTo(4)}`,
    ...(random.chance(0.8) && { owner: chance.user() }),
    ...(random.chance(0.7) && { members: random.some(chance.users(), 0.3) }),
    ...(random.chance(0.5) && {
      meta_data: { colour: random.pick(['red', 'blue']), friend: chance.user(), ...chance.nestedFile() },
    }),
    ...(random.chance(0.5) && { photo: chance.file() }),
    ...(random.chance(0.4) && { pages: [chance.nestedFile(), chance.file(), [chance.storedFile()]] }),
    ...(random.chance(0.8) && { folder: pointer(folderClass, random.pick([...folderIds, 'gone'])) }),
    ...(random.chance(0.8) && { in_folder: pointer(folderClass, random.pick([...folderIds, 'gone'])) }),
    ...chance.acl(),
  }));
  const folders = folderIds.map((objectId) => ({
    objectId,
    label: `Label ${random.upTo(3)}`,
    secret: `folder secret ${random.upTo(3)}`,
    ...(random.chance(0.8) && { owner: chance.user() }),
    ...(random.chance(0.5) && { photo: chance.file() }),
    ...(random.chance(0.5) && { extra: { ...chance.nestedFile(), deeper: chance.nestedFile() } }),
    notes: { __op: 'AddRelation', objects: random.some(ids, 0.4).map((id) => pointer(name, id)) },
    ...chance.acl(),
  }));
  return [
    [name, notes],
    [folderClass, folders.map((row) => (row.notes.objects.length > 0 ? row : { ...row, notes: null }))],
  ];
}

class Chance {
  constructor(
    readonly random: SeededRandom,
    private readonly userIds: readonly string[],
    private readonly principals: readonly string[],
  ) {}

  user() {
    return pointer('_User', this.random.pick(this.userIds));
  }

  users() {
    return this.userIds.map((id) => pointer('_User', id));
  }

  file() {
    return { __type: 'File', name: `${this.random.upTo(9)}.png` };
  }

  /** As an application stored it, with or without its URL. */
  storedFile() {
    return {
      ...this.file(),
      ...(this.random.chance(0.6) && { url: `https://files.example/${this.random.upTo(9)}` }),
    };
  }

  /** A member of an object: nobody but the application wrote its URL. */
  nestedFile() {
    return this.random.chance(0.7) ? { cover: this.storedFile() } : {};
  }

  /** None, nobody's, everyone's, or a few principals'. */
  acl(): { ACL?: Record<string, unknown> } {
    const { random } = this;
    if (random.chance(0.25)) return {};
    const names = random.some(['*'], 0.25).concat(random.some(this.principals, 0.15));
    return { ACL: Object.fromEntries(names.map((name) => [name, this.right()])) };
  }

  private right() {
    return this.random.chance(0.75) ? { read: true } : { write: true };
  }

  permissions(ownerFields: readonly string[], hideable: readonly string[], rowRules: boolean): unknown {
    const { random } = this;
    if (random.chance(0.15)) return undefined;
    const permissions: Record<string, unknown> = {};
    for (const operation of OPERATIONS) {
      if (random.chance(0.95)) permissions[operation] = this.rule(ownerFields);
    }
    if (ownerFields.length > 0 && random.chance(0.2))
      permissions['readUserFields'] = [random.pick(ownerFields)];
    if (random.chance(0.7))
      permissions['protectedFields'] = this.protectedFields(hideable, rowRules && ownerFields.length > 0);
    return permissions;
  }

  private rule(ownerFields: readonly string[]): Record<string, unknown> {
    const { random } = this;
    const rule: Record<string, unknown> = {};
    if (random.chance(0.45)) rule['*'] = true;
    if (random.chance(0.25)) rule['requiresAuthentication'] = true;
    for (const name of random.some(this.principals, 0.1)) rule[name] = true;
    if (ownerFields.length > 0 && random.chance(0.35)) rule['pointerFields'] = random.some(ownerFields, 0.5);
    return rule;
  }

  /** Always with a list for everyone: where only rules per row exist, Parley hides more than Parse Server. */
  private protectedFields(hideable: readonly string[], rowRules: boolean): Record<string, string[]> {
    const { random } = this;
    const lists: Record<string, string[]> = { '*': random.some(hideable, 0.5) };
    if (random.chance(0.4)) lists['authenticated'] = random.some(hideable, 0.5);
    for (const name of random.some(this.principals, 0.12)) lists[name] = random.some(hideable, 0.4);
    if (rowRules && random.chance(0.6)) lists['userField:owner'] = random.some(hideable, 0.3);
    if (rowRules && hideable.includes('members') && random.chance(0.4))
      lists['userField:members'] = random.some(hideable, 0.3);
    return lists;
  }
}
