import { isClassName, type Refusal, refusals, Refused } from '#core';
import type { ClassAccess, ClassReach } from './model/class-access.js';
import type { ClassSchema, FieldSchema } from './model/class-schema.js';
import { ALWAYS_KEEP, FieldNames } from './model/field-names.js';

const FIELDS: Record<string, Record<string, FieldSchema>> = {
  Song: {
    title: { type: 'String' },
    genre: { type: 'String' },
    playCount: { type: 'Number' },
    releasedOn: { type: 'Date' },
    artist: { type: 'Pointer', targetClass: 'Artist' },
    curator: { type: 'Pointer' },
    place: { type: 'GeoPoint' },
    meta: { type: 'Object' },
    tags: { type: 'Array' },
    ExtStatus: { type: 'String' },
    royalty: { type: 'Number' },
    orgId: { type: 'String' },
  },
  Artist: {
    name: { type: 'String' },
    label: { type: 'String' },
    born: { type: 'Date' },
    title: { type: 'String' },
    favourite: { type: 'Pointer', targetClass: 'Song' },
    mentor: { type: 'Pointer', targetClass: 'Artist' },
    fee: { type: 'Number' },
  },
  Playlist: {
    name: { type: 'String' },
    songs: { type: 'Relation', targetClass: 'Song' },
    secretSongs: { type: 'Relation', targetClass: 'Song' },
    fans: { type: 'Relation', targetClass: '_User' },
  },
  /** No allowlist. */
  Note: {
    body: { type: 'String' },
    song: { type: 'Pointer', targetClass: 'Song' },
    dueOn: { type: 'Date' },
  },
  _User: { username: { type: 'String' }, email: { type: 'String' }, authData: { type: 'Object' } },
};

const READABLE: Record<string, readonly string[] | null> = {
  Song: [
    'title',
    'genre',
    'playCount',
    'releasedOn',
    'artist',
    'curator',
    'place',
    'meta',
    'tags',
    'ExtStatus',
  ],
  Artist: ['name', 'born', 'title', 'favourite', 'mentor'],
  Playlist: ['name', 'songs', 'fans'],
  Note: null,
  _User: null,
};

const ALIASES: Record<string, ReadonlyMap<string, string>> = {
  Song: new Map([['externalStatus', 'ExtStatus']]),
};

function createSchema(className: string): ClassSchema {
  return {
    className,
    fields: new Map<string, FieldSchema>([
      ['objectId', { type: 'String' }],
      ['createdAt', { type: 'Date' }],
      ['updatedAt', { type: 'Date' }],
      ['ACL', { type: 'ACL' }],
      ...Object.entries(FIELDS[className] ?? {}),
    ]),
    indexes: [],
    classLevelPermissions: null,
  };
}

/** A class of the music shop as an agent sees it. Song hides `royalty` and `orgId`, Artist `label` and `fee`. */
export function music(className: string): ClassAccess {
  const readable = READABLE[className] ?? null;
  return {
    className,
    schema: createSchema(className),
    names: new FieldNames(ALIASES[className]),
    readable: readable && new Set([...readable, ...ALWAYS_KEEP]),
  };
}

/** The shop's class gate: Vault is hidden, Ledger outside the agent's classes, everything undeclared unknown. */
export const shopReach: ClassReach = {
  reach(className): ClassAccess | Refusal {
    if (className === 'Vault') return refusals.hiddenClass(className);
    if (className === 'Ledger') return refusals.classFiltered(className, 'Query class');
    if (className in FIELDS) return music(className);
    return refusals.accessDenied(
      'class',
      isClassName(className) ? `No class '${className}'` : 'No such class',
    );
  },
};

/** The refusal that the work throws. Any other error is rethrown. */
export function catchRefusal(work: () => unknown): Refusal | null {
  try {
    work();
    return null;
  } catch (error) {
    if (error instanceof Refused) return error.refusal;
    throw error;
  }
}
