import { isDeepStrictEqual } from 'node:util';
import type { ConfigVersions } from '#config';
import type { RenewedCatalogue } from '#data';
import { PARSE_ALONE, type StorageDeclarations } from '#data-mongo';
import type { Policy } from '#policy';

/** Which classes there are, and how each is stored: by the configuration and by what code declares, which the policy holds. */
export function storageDeclarationsOf({
  classes,
  databases,
  switches,
  storage,
}: Policy): StorageDeclarations {
  const declared = [...classes.values()];
  const plain = declared.flatMap(({ className, database, plain: stored }) =>
    stored ? [{ className, ...(database !== null && { database }), ...stored }] : [],
  );
  const ofParse = (name: string | null) =>
    declared.filter((one) => one.database === name && one.plain === null).map(({ className }) => className);
  const collectionsOf = (name: string | undefined) =>
    plain.filter(({ database }) => database === name).map(({ collection }) => collection);
  const further = new Map(
    [...databases].map(([name, { storage: form }]) => [
      name,
      {
        parse: new Set(ofParse(name)),
        ...(form === 'parse' && { guarded: new Set(collectionsOf(name)) }),
      },
    ]),
  );
  const beside = further.size > 0 ? { further } : {};
  if (switches.unlistedClasses === 'allow')
    return plain.length === 0 && further.size === 0 ? PARSE_ALONE : { parse: 'all', plain, ...beside };
  // A class of Parse that nobody listed is read as well where a plain class names its collection: its ACLs protect the rows.
  const collections = storage === 'parse' ? collectionsOf(undefined) : [];
  return { parse: new Set([...ofParse(null), ...collections]), plain, ...beside };
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
