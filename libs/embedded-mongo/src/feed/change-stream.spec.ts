import { Timestamp } from 'bson';
import { describe, expect, it, vi } from 'vitest';
import type { Document } from '../bson/document.js';
import { Catalog, Collection } from '../storage/catalog.js';
import { type Change, createDraft, draftNext } from '../storage/change.js';
import { LiveWorkspace } from '../storage/store.js';
import { decodeDocument } from '../wire/decode.js';
import { ChangeLog } from './change-log.js';
import { ChangeStream, type StreamScope } from './change-stream.js';
import { startPosition, streamOptions } from './stream-options.js';

import fc from 'fast-check';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

function world(maxBytes = 1_000_000) {
  const log = new ChangeLog(maxBytes);
  const catalog = new Catalog();
  const live = new LiveWorkspace(catalog, { publish: (changes, origin) => log.append(changes, origin) });
  const open = (spec: Document = {}, scope: StreamScope = { db: 'd', coll: 'c' }): ChangeStream =>
    new ChangeStream(log, scope, streamOptions(spec), startPosition(log, spec), undefined, (db, name) =>
      catalog.find(db, name),
    );
  return { log, live, open, collection: live.obtain('d', 'c') };
}

const events = (stream: ChangeStream, limit = 1_000): Document[] =>
  stream.pull(limit).map((one) => decodeDocument(one));

function write(
  live: LiveWorkspace,
  collection: Collection,
  { id, change }: { id: number; change: Document | undefined },
): void {
  const present = collection.byId(id);
  if (!change) {
    if (present) live.remove(collection, present);
  } else if (present) {
    live.replace(
      collection,
      present,
      draftNext(present, { _id: id, ...change }),
      id % 2 === 0 ? 'update' : 'replace',
    );
  } else live.insert(collection, createDraft({ _id: id, ...change }));
}

/** Sets a dotted path the way a consumer of updateDescription has to. */
function setPath(target: Document, path: string, value: unknown): void {
  const names = path.split('.');
  const last = names.pop() ?? '';
  const owner = names.reduce<unknown>((at, name) => (at as Document)[name], target) as Document;
  owner[last] = value;
}

function replay(into: Map<unknown, Document>, event: Document): void {
  const id = (event['documentKey'] as Document)['_id'];
  if (event['operationType'] === 'delete') into.delete(id);
  else if (event['fullDocument']) into.set(id, event['fullDocument'] as Document);
  else {
    const document = structuredClone(into.get(id)) as Document;
    const { updatedFields, removedFields, truncatedArrays } = event['updateDescription'] as {
      updatedFields: Document;
      removedFields: string[];
      truncatedArrays: { field: string; newSize: number }[];
    };
    for (const { field, newSize } of truncatedArrays) {
      const array = field
        .split('.')
        .reduce<unknown>((at, name) => (at as Document)[name], document) as unknown[];
      array.length = newSize;
    }
    for (const [path, value] of Object.entries(updatedFields)) setPath(document, path, value);
    for (const path of removedFields) {
      const names = path.split('.');
      const last = names.pop() ?? '';
      delete (names.reduce<unknown>((at, name) => (at as Document)[name], document) as Document)[last];
    }
    into.set(id, document);
  }
}

const content = fc.record(
  {
    n: fc.integer({ min: 0, max: 3 }),
    list: fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 4 }),
    inner: fc.record(
      { x: fc.integer({ min: 0, max: 2 }), y: fc.string({ maxLength: 2 }) },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
);
const steps = fc.array(fc.record({ id: fc.nat(5), change: fc.option(content, { nil: undefined }) }), {
  maxLength: 40,
});

describe('ChangeStream', () => {
  it('lets a consumer rebuild the collection by replaying the events, also in pieces with resumption', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 7 }), (list, batch) => {
        const { live, open, collection } = world();
        let stream = open();
        for (const one of list) write(live, collection, one);
        const rebuilt = new Map<unknown, Document>();
        for (;;) {
          const part = events(stream, batch);
          for (const event of part) replay(rebuilt, event);
          if (part.length === 0) break;
          stream = open({ resumeAfter: part.at(-1)?.['_id'] });
        }
        const stored = Array.from(collection.snapshotRecords().range(), ({ document }) => document);
        expect(new Map(stored.map((one) => [one['_id'], one]))).toEqual(rebuilt);
      }),
    );
  });

  it('goes on from its own token when nothing happened meanwhile', () => {
    const { live, open, collection } = world();
    live.insert(collection, createDraft({ _id: 1 }));
    const idle = open();
    expect(events(idle)).toEqual([]);
    const token = idle.resumeToken();
    live.insert(collection, createDraft({ _id: 2 }));
    expect(events(open({ resumeAfter: token })).map((event) => event['documentKey'])).toEqual([{ _id: 2 }]);
  });

  it('starts at an operation time and includes what happened at it', () => {
    const { log, live, open, collection } = world();
    live.insert(collection, createDraft({ _id: 1 }));
    const time = log.time;
    live.insert(collection, createDraft({ _id: 2 }));
    const ids = events(open({ startAtOperationTime: time })).map((event) => event['documentKey']);
    expect(ids).toEqual([{ _id: 1 }, { _id: 2 }]);
  });

  it('answers 286 when the place to resume from was dropped, and never skips silently', () => {
    const { live, open, collection } = world(3_000);
    const slow = open();
    live.insert(collection, createDraft({ _id: 0 }));
    const early = open();
    const token = early.resumeToken();
    for (let id = 1; id < 50; id += 1)
      live.insert(collection, createDraft({ _id: id, text: 'x'.repeat(100) }));
    const lost = expect.objectContaining({ code: 286, labels: ['NonResumableChangeStreamError'] });
    expect(() => events(slow)).toThrow(lost);
    expect(() => open({ resumeAfter: token })).toThrow(lost);
    expect(() => open({ startAtOperationTime: new Timestamp({ t: 1, i: 1 }) })).toThrow(lost);
  });

  it.each([{ _data: 'FF' }, { _data: 7 }, {}, { _data: '82' }])('refuses the foreign token %j', (token) => {
    expect(() => world().open({ resumeAfter: token })).toThrow(expect.objectContaining({ code: 50811 }));
  });

  it('ends with an invalidate event when its collection is dropped, and resumes after it by startAfter only', () => {
    const { log, open, collection } = world();
    const stream = open();
    const drop: Change = { kind: 'drop', ns: collection.ns, uuid: collection.uuid };
    log.append([drop]);
    const [, invalidate] = events(stream);
    expect(invalidate).toMatchObject({ operationType: 'invalidate' });
    expect(stream.ended).toBe(true);
    expect(() => open({ resumeAfter: invalidate?.['_id'] })).toThrow(expect.objectContaining({ code: 260 }));
    expect(events(open({ startAfter: invalidate?.['_id'] }))).toEqual([]);
  });

  it('gives all changes of one transaction the same cluster time and tokens of their own', () => {
    const { log, open, collection } = world();
    const stream = open();
    const base = { ns: collection.ns, uuid: collection.uuid, kind: 'insert' as const };
    const changes = [1, 2].map((_id) => ({ ...base, after: collection.insert(createDraft({ _id })) }));
    log.append(changes, { lsid: { id: 1 }, txnNumber: 5 });
    const [first, second] = events(stream);
    expect(first?.['clusterTime']).toEqual(second?.['clusterTime']);
    expect(first?.['_id']).not.toEqual(second?.['_id']);
    expect(first).toMatchObject({ txnNumber: 5 });
    expect(events(open({ resumeAfter: first?.['_id'] }))).toHaveLength(1);
  });

  it('shows images only where the collection keeps them', () => {
    const { live, open, collection } = world();
    const stored = live.insert(collection, createDraft({ _id: 1, n: 1 }));
    const available = open({ fullDocument: 'whenAvailable', fullDocumentBeforeChange: 'whenAvailable' });
    const required = open({ fullDocument: 'required' });
    live.replace(collection, stored, draftNext(stored, { _id: 1, n: 2 }), 'update');
    expect(events(available)).toMatchObject([{ fullDocument: null, fullDocumentBeforeChange: null }]);
    expect(() => events(required)).toThrow(expect.objectContaining({ code: 47 }));

    collection.options = { changeStreamPreAndPostImages: { enabled: true } };
    const images = open({ fullDocument: 'required', fullDocumentBeforeChange: 'required' });
    const present = collection.byId(1);
    if (present) live.replace(collection, present, draftNext(present, { _id: 1, n: 3 }), 'update');
    expect(events(images)).toMatchObject([{ fullDocument: { n: 3 }, fullDocumentBeforeChange: { n: 2 } }]);
  });

  it('reports the creation of collections only when asked to', () => {
    const { live, open } = world();
    const plain = open({}, { db: 'd', coll: undefined });
    const expanded = open({ showExpandedEvents: true }, { db: 'd', coll: undefined });
    live.create('d', 'new', {});
    expect(events(plain)).toEqual([]);
    expect(events(expanded)).toMatchObject([{ operationType: 'create', ns: { db: 'd', coll: 'new' } }]);
  });
});
