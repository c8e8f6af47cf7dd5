/** Time stamps of a row around one attempt to write it. By them a later attempt determines whether this one was applied. */
export interface WriteMark {
  /** Identifies this attempt. */
  readonly attempt: string;
  /**
   * The time stamp that the row must have for the attempt to be applied: of an update `updatedAt`, of a deletion `createdAt`.
   */
  readonly before: string;
  /** The `updatedAt` that this attempt and the previous ones set on the row. Empty for a deletion. */
  readonly after: readonly string[];
}

/** The stored state of a write that carried a key. It contains no values: the written row is read again. */
export interface KeyedWrite {
  /** Digest of the operation and its arguments: another one under the same key is an error of the caller. */
  readonly digest: string;
  /** `begun`: it was about to be sent, and the outcome is not known. */
  readonly state: 'begun' | 'done';
  /** Id of the written row. Absent while it is not known. */
  readonly objectId?: string;
  /** Time stamps of the last attempt that was about to be sent. Absent: the row does not show whether there was one. */
  readonly mark?: WriteMark;
}

/** Milliseconds for which a key is stored. */
export const WRITE_KEY_LIFETIME = 24 * 3_600_000;

/** Keys of writes for all replicas, each of one principal. @throws WriteKeysUnavailable, WriteKeysSpent: a write then does not begin */
export abstract class WriteKeys {
  /** Stores a key that is new. @returns its stored state when it is not */
  abstract begin(principal: string, key: string, digest: string): Promise<KeyedWrite | null>;
  /**
   * Records that an attempt is about to be sent.
   * @param write without a mark: the row does not show later whether the attempt was applied
   * @param previous the mark that this one replaces
   * @returns false when another attempt has recorded its own since then: this one must not be sent
   */
  abstract sending(
    principal: string,
    key: string,
    write: Omit<KeyedWrite, 'state'>,
    previous: WriteMark | undefined,
  ): Promise<boolean>;
  /** Records the result of the write. */
  abstract done(principal: string, key: string, write: Omit<KeyedWrite, 'state'>): Promise<void>;
  /**
   * Deletes a key whose write is known not to have been applied: it may be tried again.
   * @param mark of the attempt that was not applied. A key that another attempt has taken over is kept
   */
  abstract forget(principal: string, key: string, mark: WriteMark | undefined): Promise<void>;
}

/** Keys cannot be read or stored at the moment. */
export class WriteKeysUnavailable extends Error {
  override readonly name = 'WriteKeysUnavailable';
}

/** The principal has used its limit of keys. */
export class WriteKeysSpent extends Error {
  override readonly name = 'WriteKeysSpent';
  /** @param rate the limit, and the seconds until a further key is permitted */
  constructor(
    readonly rate: { readonly limit: number; readonly window: number; readonly retryAfter: number },
  ) {
    super();
  }
}

/** Where keys are not stored: a write with a key is refused, as it is while the key store is unavailable. */
export class NoWriteKeys extends WriteKeys {
  begin(): Promise<null> {
    return Promise.reject(new WriteKeysUnavailable());
  }

  sending(): Promise<false> {
    return Promise.reject(new WriteKeysUnavailable());
  }

  done(): Promise<void> {
    return Promise.resolve();
  }

  forget(): Promise<void> {
    return Promise.resolve();
  }
}
