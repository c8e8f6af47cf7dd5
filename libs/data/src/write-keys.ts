/** Time stamps of a row around one attempt to write it. By them a later attempt finds out whether this one was applied. */
export interface WriteMark {
  /** Names this attempt alone. */
  readonly attempt: string;
  /** The time stamp that the row must have for the attempt to be applied: of an update `updatedAt`, of a deletion `createdAt`. */
  readonly before: string;
  /** The `updatedAt` that this attempt and those before it give to the row. Empty for a deletion. */
  readonly after: readonly string[];
}

/** What is remembered of a write that carried a key. No values: what it wrote is read again. */
export interface KeyedWrite {
  /** Of the operation and its arguments: another one under the same key is a mistake of the caller. */
  readonly digest: string;
  /** `begun`: it was about to be sent, and the outcome is not known. */
  readonly state: 'begun' | 'done';
  /** Of the row that was written. Absent while that is not known. */
  readonly objectId?: string;
  /** Of the last attempt that was about to be sent. Absent: the row does not show whether there was one. */
  readonly mark?: WriteMark;
}

/** How long a key is remembered, in milliseconds. */
export const WRITE_KEY_LIFETIME = 24 * 3_600_000;

/** Keys of writes for all replicas, each of one principal. @throws WriteKeysUnavailable, WriteKeysSpent: a write then does not begin */
export abstract class WriteKeys {
  /** Keeps a key that is new. @returns what is known of it when it is not */
  abstract begin(principal: string, key: string, digest: string): Promise<KeyedWrite | null>;
  /**
   * Notes that an attempt is about to be sent.
   * @param write without a mark: the row does not show later whether the attempt was applied
   * @param previous the mark that this one replaces
   * @returns false when another attempt has noted its own since then: this one must not be sent
   */
  abstract sending(
    principal: string,
    key: string,
    write: Omit<KeyedWrite, 'state'>,
    previous: WriteMark | undefined,
  ): Promise<boolean>;
  /** Notes what came of the write. */
  abstract done(principal: string, key: string, write: Omit<KeyedWrite, 'state'>): Promise<void>;
  /**
   * Forgets a key whose write is known not to have happened: it may be tried again.
   * @param mark of the attempt that was not applied. A key that another attempt has taken over is kept
   */
  abstract forget(principal: string, key: string, mark: WriteMark | undefined): Promise<void>;
}

/** Keys cannot be looked up or kept at the moment. */
export class WriteKeysUnavailable extends Error {
  override readonly name = 'WriteKeysUnavailable';
}

/** The principal gave as many keys as are remembered for one. */
export class WriteKeysSpent extends Error {
  override readonly name = 'WriteKeysSpent';
  /** @param rate what is permitted, and in how many seconds a further key may be */
  constructor(
    readonly rate: { readonly limit: number; readonly window: number; readonly retryAfter: number },
  ) {
    super();
  }
}

/** Where nothing is remembered: a write with a key is refused, as it is where keys are away. */
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
