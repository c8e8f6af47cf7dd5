import { createHash } from 'node:crypto';
import { refuse } from '#core';
import type { ChangeSet, ProposedWrite, StoredEntry } from '#data';

/** A key of a write, and the write that it stands for, both as digests. */
export interface WriteKey {
  readonly key: string;
  readonly digest: string;
}

const KEY = /^[A-Za-z0-9._:-]{1,128}$/;

/** @throws Refused for what is no key */
export function readKey(key: unknown, write: ProposedWrite): WriteKey {
  if (typeof key !== 'string' || !KEY.test(key))
    throw refuse.invalidArgument(
      'idempotency_key must be 1 to 128 letters, digits and the characters . _ : -',
    );
  // With the key, which nobody stores: who reads the digest cannot try values.
  const digest = createHash('sha256')
    .update(JSON.stringify([key, write]))
    .digest('base64url');
  // Names of members of a document contain no dots.
  return { key: createHash('sha256').update(key).digest('base64url'), digest };
}

/** The entry that the same call made before. @throws Refused when the key belongs to another write */
export function findKeyed({ entries }: ChangeSet, { key, digest }: WriteKey): StoredEntry | null {
  const found = entries.find(({ keys = {} }) => Object.hasOwn(keys, key));
  if (!found) return null;
  if (found.keys?.[key] === digest) return found;
  throw refuse.invalidArgument(
    'idempotency_key was used for another call: a key stands for one write, so give a new one to this',
  );
}
