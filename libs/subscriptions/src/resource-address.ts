import { invalidParams } from '#dispatcher';
import type { WatchedOperation } from '#data';
import type { ProvidedResource } from './provided-watch.js';

/** A resource made of the rows of a class. */
export interface WatchedRows {
  /** As the client wrote it: what it is told when it changed. */
  readonly uri: string;
  readonly className: string;
  readonly operation: WatchedOperation;
}

/** A resource that can be subscribed to. */
export type WatchedResource = WatchedRows | ProvidedResource;

const RESOURCE = /^parse:\/\/([A-Za-z_][A-Za-z0-9_]*)\/(schema|count|samples)$/;

const OPERATIONS: Readonly<Record<string, WatchedOperation>> = { count: 'count', samples: 'find' };

/** @throws ProtocolFault for anything but `parse://<Class>/count` and `parse://<Class>/samples` */
export function watchedRows(uri: string): WatchedRows {
  const match = RESOURCE.exec(uri);
  const [whole, className, kind] = match ?? [];
  // `$` also matches before a final line break.
  if (className === undefined || kind === undefined || whole?.length !== uri.length) {
    throw invalidParams(`Invalid resource URI: ${uri}. Expected parse://<Class>/{count|samples}.`);
  }
  const operation = OPERATIONS[kind];
  if (!operation) {
    throw invalidParams(
      `Resource kind '${kind}' is not subscribable: only count and samples are LiveQuery-backed. A change of a schema is no row event.`,
    );
  }
  return { uri, className, operation };
}
