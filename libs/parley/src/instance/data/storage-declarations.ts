import { isDeepStrictEqual } from 'node:util';
import type { ConfigVersions } from '#config';
import type { RenewedCatalogue } from '#data';
import { PARSE_ALONE, type StorageDeclarations } from '#data-mongo';
import type { Policy } from '#policy';

/** Which classes there are, and how each is stored: by the configuration and by what code declares, which the policy holds. */
export function storageDeclarationsOf({ classes, switches, storage }: Policy): StorageDeclarations {
  const declared = [...classes.values()];
  const plain = declared.flatMap(({ className, plain: stored }) =>
    stored ? [{ className, ...stored }] : [],
  );
  if (switches.unlistedClasses === 'allow') return plain.length === 0 ? PARSE_ALONE : { parse: 'all', plain };
  const ofParse = declared.filter((one) => one.plain === null).map(({ className }) => className);
  // A class of Parse that nobody listed is read as well where a plain class names its collection: its ACLs protect the rows.
  const collections = storage === 'parse' ? plain.map(({ collection }) => collection) : [];
  return { parse: new Set([...ofParse, ...collections]), plain };
}

/** Reads the classes again as soon as a new version of the configuration declares others. */
export function followDeclarations(
  versions: Pick<ConfigVersions, 'changes'>,
  catalogue: Pick<RenewedCatalogue, 'forget'>,
): void {
  versions.changes.subscribe(({ before, now }) => {
    if (!isDeepStrictEqual(storageDeclarationsOf(before.policy), storageDeclarationsOf(now.policy)))
      catalogue.forget();
  });
}
