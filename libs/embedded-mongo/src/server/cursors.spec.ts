import { describe, expect, it } from 'vitest';
import { CursorTable, Reader } from './cursors.js';
import { OperationTable } from './operation.js';
import { toRows } from './steps.js';

const operations = new OperationTable();
const operation = (name: string) =>
  operations.start(
    { connectionId: 1, client: '', appName: undefined, name, namespace: 'd.c', command: {}, lsid: undefined },
    0,
  );

function table() {
  const cursors = new CursorTable();
  const open = (noTimeout = false) =>
    cursors.add({
      namespace: 'd.c',
      source: { kind: 'documents', reader: new Reader(operation('find')), rows: toRows([]) },
      ahead: undefined,
      budgetMs: undefined,
      noTimeout,
      sessionKey: undefined,
      txnNumber: undefined,
    });
  return { cursors, open };
}

const minutes = (count: number): number => Date.now() + count * 60_000;

describe('CursorTable', () => {
  it('closes a cursor nobody asked for in ten minutes, unless it has no timeout or is being read', () => {
    const { cursors, open } = table();
    const idle = open();
    const kept = open(true);
    const read = open();
    read.inUse = true;
    cursors.closeIdle(minutes(9));
    expect(cursors.size).toBe(3);
    cursors.closeIdle(minutes(11));
    expect([idle, kept, read].map(({ id }) => cursors.close(id.toString()))).toEqual([false, true, true]);
  });

  it('stops the operation that reads a cursor when the cursor is closed', () => {
    const { cursors, open } = table();
    const cursor = open();
    cursor.inUse = true;
    const reading = operation('getMore');
    cursor.source.reader.operation = reading;
    expect(cursors.close(cursor.id.toString())).toBe(true);
    expect(() => cursor.source.reader.tick()).toThrow(expect.objectContaining({ code: 237 }));
    expect(cursors.close(cursor.id.toString())).toBe(false);
  });

  it('refuses to hold cursors without end', () => {
    const { open } = table();
    for (let count = 0; count < 10_000; count += 1) open();
    expect(() => open()).toThrow(expect.objectContaining({ code: 146 }));
  });
});
