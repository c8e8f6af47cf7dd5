import { Timestamp } from 'bson';
import { type Document, isDocument } from '../bson/document.js';
import { mongoError, type MongoError, requireOneOf } from '../errors.js';
import { type ChangeLog, createToken, toStartKey, toEndKey, readToken } from './change-log.js';

/** How much a stream insists on the document before or after a change. */
export type ImageMode = 'whenAvailable' | 'required';

/** The options of `$changeStream` after checking. */
export interface StreamOptions {
  readonly fullDocument: 'default' | 'updateLookup' | ImageMode;
  readonly before: 'off' | ImageMode;
  readonly expanded: boolean;
}

/** Errors end the stream for good: a driver must not resume after them. */
export function fatal(code: number, message: string): MongoError {
  const error = mongoError(code, message);
  error.labels = ['NonResumableChangeStreamError'];
  return error;
}

export const historyLost = (): MongoError =>
  fatal(286, 'Resume of change stream was not possible, as the resume point may no longer be in the oplog.');

/** Where a stream begins: the first position to read, and the token of the place before it. */
export interface StreamStart {
  readonly position: number;
  readonly token: Document;
}

/** Where in the log a stream begins. Errors: 50811 for a foreign token, 286 when the place is no longer in the log. */
export function startPosition(log: ChangeLog, spec: Document): StreamStart {
  const resume = spec['resumeAfter'] ?? spec['startAfter'];
  if (resume !== undefined) {
    const { key, invalidate } = readToken(resume);
    if (invalidate && spec['resumeAfter'] !== undefined)
      throw mongoError(260, 'resumeAfter takes no token of an invalidate event');
    const position = log.positionAfter(key);
    if (position === undefined) throw historyLost();
    return { position, token: createToken(key) };
  }
  const time = spec['startAtOperationTime'];
  if (time instanceof Timestamp) {
    const position = log.positionFrom(toStartKey(time));
    if (position === undefined) throw historyLost();
    return { position, token: createToken(toStartKey(time)) };
  }
  return { position: log.end, token: createToken(toEndKey(log.time)) };
}

/** Checks the options of `$changeStream`. Errors: 2 for an unknown value, 9 for contradicting starts. */
export function streamOptions(spec: Document): StreamOptions {
  const { fullDocument = 'default', fullDocumentBeforeChange = 'off' } = spec;
  requireOneOf(fullDocument, ['default', 'updateLookup', 'whenAvailable', 'required'], 'fullDocument');
  requireOneOf(fullDocumentBeforeChange, ['off', 'whenAvailable', 'required'], 'fullDocumentBeforeChange');
  const starts = ['resumeAfter', 'startAfter', 'startAtOperationTime'].filter(
    (name) => spec[name] !== undefined,
  );
  if (starts.length > 1)
    throw mongoError(40674, 'Only one type of resume option is allowed, but multiple were found.');
  if (starts.some((name) => name !== 'startAtOperationTime' && !isDocument(spec[name])))
    throw mongoError(14, `BSON field '$changeStream.${starts[0] ?? ''}' must be an object`);
  return {
    fullDocument: fullDocument as StreamOptions['fullDocument'],
    before: fullDocumentBeforeChange as StreamOptions['before'],
    expanded: spec['showExpandedEvents'] === true,
  };
}
