import type { Document } from '../bson/document.js';
import type { Change } from '../storage/change.js';
import type { Collection } from '../storage/collection.js';
import { updateDescription } from '../update/diff.js';
import type { ChangeLogEntry } from './change-log.js';
import { createToken } from './resume-token.js';
import { fatal, type ImageMode, type StreamOptions } from './stream-options.js';

/** Finds a collection as it is now, for streams that look up the present document. */
export type CollectionLookup = (db: string, coll: string) => Collection | undefined;

/** A logged change as the event a stream with these options shows. Errors: 47 when a required image is not kept. */
export function changeEvent(
  entry: ChangeLogEntry,
  options: StreamOptions,
  lookup: CollectionLookup,
): Document {
  const { key, clusterTime, wallTime, change, origin } = entry;
  return {
    _id: createToken(key),
    ...operation(change, options.expanded),
    clusterTime,
    wallTime,
    ...('ns' in change && options.expanded ? { collectionUUID: change.uuid } : {}),
    ...images(change, options, lookup),
    ...(origin ? { lsid: origin.lsid, txnNumber: origin.txnNumber } : {}),
  };
}

/** Only expanded events tell apart the paths that could be read in two ways. */
function describeUpdate(
  { before, after }: Extract<Change, { before: unknown; after: unknown }>,
  expanded: boolean,
): Document {
  const { disambiguatedPaths, ...description } = updateDescription(before.document, after.document);
  return expanded ? { ...description, disambiguatedPaths } : description;
}

/** The documents of an event, as far as the stream asks for them and the collection keeps them. */
function images(change: Change, options: StreamOptions, lookup: CollectionLookup): Document {
  const images: Document = {};
  const { fullDocument, before } = options;
  if (change.kind === 'insert' || change.kind === 'replace') images['fullDocument'] = change.after.document;
  if (change.kind === 'update' && fullDocument !== 'default') {
    images['fullDocument'] =
      fullDocument === 'updateLookup'
        ? (lookup(change.ns.db, change.ns.coll)?.byId(change.before.document['_id'])?.document ?? null)
        : keepImage(change.images, change.after.document, fullDocument, 'post');
  }
  if (
    before !== 'off' &&
    (change.kind === 'update' || change.kind === 'replace' || change.kind === 'delete')
  ) {
    images['fullDocumentBeforeChange'] = keepImage(change.images, change.before.document, before, 'pre');
  }
  return images;
}

function keepImage(
  available: boolean,
  document: Document,
  mode: ImageMode,
  which: 'pre' | 'post',
): Document | null {
  if (available) return document;
  if (mode === 'whenAvailable') return null;
  throw fatal(
    47,
    `Change stream was configured to require a ${which}-image for all events, but the ${which}-image was not found`,
  );
}

function operation(change: Change, expanded: boolean): Document {
  if (change.kind === 'dropDatabase') return { operationType: 'dropDatabase', ns: { db: change.db } };
  const { kind, ns } = change;
  const shown = (operationDescription: Document): Document => ({ ns, operationDescription });
  switch (kind) {
    case 'insert':
    case 'replace':
    case 'update':
    case 'delete': {
      const { _id } = (kind === 'delete' ? change.before : change.after).document;
      const update = kind === 'update' && { updateDescription: describeUpdate(change, expanded) };
      return { operationType: kind, ns, documentKey: { _id }, ...update };
    }
    case 'rename': {
      const { to, dropTarget } = change;
      return { operationType: kind, to, ...shown({ to, ...(dropTarget ? { dropTarget } : {}) }) };
    }
    case 'create':
    case 'modify':
      return { operationType: kind, ...shown(change.options) };
    case 'modifyIndex':
      return { operationType: 'modify', ...shown({ index: change.spec }) };
    case 'createIndexes':
    case 'dropIndexes':
      return { operationType: kind, ...shown({ indexes: [change.spec] }) };
    case 'drop':
      return { operationType: kind, ns };
  }
}
