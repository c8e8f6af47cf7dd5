import type { ChangeStreamDocument } from 'mongodb';
import type { RowChange } from '#data';
import { documentToRow, idText } from '../storage/from-storage.js';
import type { StoredClasses } from '../storage/stored-classes.js';

const KINDS: Readonly<Record<string, RowChange['kind']>> = {
  insert: 'create',
  update: 'update',
  replace: 'update',
  delete: 'delete',
};

export const WATCHED_OPERATIONS = Object.keys(KINDS);

/** A change event in Parse's words; null for events that are not about one row. */
export function rowChangeOf(event: ChangeStreamDocument, classes: StoredClasses): RowChange | null {
  const kind = KINDS[event.operationType];
  if (!kind || !('documentKey' in event) || !('ns' in event) || !('coll' in event.ns)) return null;
  const className = event.ns.coll;
  const document = 'fullDocument' in event ? event.fullDocument : undefined;
  return {
    className: String(className),
    objectId: idText(event.documentKey?._id),
    kind,
    row: document ? documentToRow(document, classes.names(String(className))) : null,
  };
}
