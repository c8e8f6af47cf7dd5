import { createHash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { type Agent, refuse } from '#core';
import type { AppliedChange, ChangeSet, HeldChange, StoredEntry } from '#data';
import { SealedText, StateKeys } from '#dispatcher';

/** What a seal hides of an entry: values of rows. */
type Hidden = Pick<HeldChange, 'fields' | 'before' | 'after' | 'restored' | 'found'>;

/** Seals the values of change sets with a key of `server.stateKey`: who reads the collection reads no row. */
@Injectable()
export class ChangeSeal {
  private readonly text: SealedText;

  constructor(@Inject(StateKeys) keys: StateKeys) {
    this.text = new SealedText(keys, 'parley change sets');
  }

  /** @param entry its number in the set */
  async seal(set: string, entry: number, change: HeldChange | AppliedChange): Promise<StoredEntry> {
    const { operation, className, objectId, fields, before, after, restored, found } = change;
    const hidden: Hidden = {
      fields,
      before,
      ...(after !== undefined && { after }),
      ...(restored !== undefined && { restored }),
      ...(found !== undefined && { found }),
    };
    return {
      entry,
      operation,
      className,
      objectId,
      fields: Object.keys(fields ?? {}),
      sealed: await this.text.seal(JSON.stringify(hidden), bind(set, entry)),
    };
  }

  /** @throws Refused when nobody can read it any more: it was deleted, or sealed with a key that the operator has taken away */
  async open(set: string, stored: StoredEntry): Promise<HeldChange> {
    const { entry, operation, className, objectId, sealed } = stored;
    const plain = sealed === undefined ? undefined : await this.text.open(sealed, bind(set, entry));
    if (plain === undefined)
      throw refuse.parseError(
        'the values of this change set cannot be read any more: discard it',
        `entry ${entry} of change set ${set}`,
      );
    return { operation, className, objectId, ...(JSON.parse(plain) as Hidden) };
  }

  /** Every change of a set, in their order. @throws Refused */
  openAll({ id, entries }: Pick<ChangeSet, 'id' | 'entries'>): Promise<readonly HeldChange[]> {
    return Promise.all(entries.map((entry) => this.open(id, entry)));
  }
}

/** By which credentials a row was written. @param known before this write */
export function nameKeys(
  { keyName }: Pick<Agent, 'keyName'>,
  known?: StoredEntry,
): Pick<StoredEntry, 'keyNames'> {
  const keyNames = [...new Set([...(known?.keyNames ?? []), ...(keyName === null ? [] : [keyName])])];
  return keyNames.length > 0 ? { keyNames } : {};
}

/** An entry that was moved to another place, or to another set, does not open. */
const bind = (set: string, entry: number): string => JSON.stringify([set, entry]);

/** Identifies everything that is approved with a set. It changes with every change of the set. */
export function digestSet({ id, kind, undoes, revision, title, reason, entries }: ChangeSet): string {
  return createHash('sha256')
    .update(JSON.stringify([id, kind, undoes, revision, title, reason, entries]))
    .digest('base64url');
}

/** Of sealed values: with them a set fits into one document of MongoDB. */
const MAX_SEALED_BYTES = 15 * 1_048_576;

/** @throws Refused for rows that no set can hold */
export function assertStorable(entries: readonly StoredEntry[]): void {
  const bytes = entries.reduce((sum, { sealed = '' }) => sum + sealed.length, 0);
  if (bytes <= MAX_SEALED_BYTES) return;
  throw refuse.invalidArgument(
    `the rows of this take ${bytes} bytes as they are kept to be taken back, and one change set holds at most ${MAX_SEALED_BYTES}: ` +
      'change, or take back, fewer rows or smaller ones at once',
  );
}

/** Names of the credentials by which the rows of a set were written, each once. */
export function listKeyNames({ entries }: Pick<ChangeSet, 'entries'>): readonly string[] {
  return [...new Set(entries.flatMap(({ keyNames = [] }) => keyNames))].sort();
}

export function withoutValues({ sealed: _sealed, ...entry }: StoredEntry): StoredEntry {
  return entry;
}

/** The classes of the rows of a set, each once. */
export function listClasses({ entries }: Pick<ChangeSet, 'entries'>): readonly string[] {
  return [...new Set(entries.map(({ className }) => className))].sort();
}
