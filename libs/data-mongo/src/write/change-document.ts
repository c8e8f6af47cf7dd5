import { BSON, type Document } from 'mongodb';
import { afterName, valueSize } from '../storage/documents.js';

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** MongoDB orders new columns by their bytes, but those whose names are numbers by these. */
const ORDERED_OTHERWISE = /\.|^\d+$/;

/** Whether what an update leaves depends on no more than the columns that `$set` and `$unset` name. */
export const setsColumns = ({ $set = {}, $unset = {}, ...others }: Document): boolean =>
  Object.keys(others).length === 0 &&
  ![$set, $unset].flatMap(Object.keys).some((name) => ORDERED_OTHERWISE.test(name));

/** The document that an update which only sets columns leaves, byte for byte as MongoDB stores it. */
export function changeDocument(bytes: Uint8Array, { $set = {}, $unset = {} }: Document): Uint8Array {
  const removed = new Set(Object.keys($unset));
  const set = new Map(
    Object.entries($set as Document).map(([name, value]) => [name, toElement(name, value)]),
  );
  const elements: Uint8Array[] = [];
  for (let at = 4; bytes[at] !== 0;) {
    const value = afterName(bytes, at + 1);
    const end = value + valueSize(bytes, bytes[at] as number, value);
    const name = utf8.decode(bytes.subarray(at + 1, value - 1));
    // Of two members of one name the first one is changed.
    const isChanged = removed.has(name) || set.has(name);
    elements.push(isChanged ? (set.get(name) ?? NOTHING) : bytes.subarray(at, end));
    if (isChanged) {
      set.delete(name);
      removed.delete(name);
    }
    at = end;
  }
  const added = [...set.keys()].toSorted((one, other) =>
    Buffer.compare(Buffer.from(one), Buffer.from(other)),
  );
  for (const name of added) elements.push(set.get(name) ?? NOTHING);
  const body = Buffer.concat(elements);
  const size = Buffer.alloc(4);
  size.writeInt32LE(body.length + 5);
  return Buffer.concat([size, body, Buffer.alloc(1)]);
}

const NOTHING = new Uint8Array();

/** A member of a document: the type, the name and the value. */
const toElement = (name: string, value: unknown): Uint8Array =>
  BSON.serialize({ [name]: value }).subarray(4, -1);
