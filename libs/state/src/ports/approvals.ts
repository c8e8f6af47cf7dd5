type Members = Readonly<Record<string, unknown>>;

/** The request that an approver sees. Plain JSON: it outlives the process that created it. */
export interface ApprovalDraft {
  readonly requester: {
    readonly principal: string;
    readonly agent: string;
    readonly tenant: string | number | null;
    /** Its tenants by scopes that do not go by `tenantId`. Absent: it has none. */
    readonly tenants?: readonly (readonly [scope: string, tenant: string | number])[];
    /** The user or role whose rights it reads with, and its values that filters compare with. Absent: it has none. */
    readonly rights?: readonly string[];
  };
  /** Name of the key that it called with. Absent: the key has no name, or there was none. */
  readonly keyName?: string;
  readonly tool: string;
  /** The tier of the call. */
  readonly permission: string;
  /** Identifies the call: caller, tool and arguments. Only one case per subject is open at a time. */
  readonly subject: string;
  /** Digest of what was shown: when it differs, the decision does not apply. */
  readonly holdsFor: string;
  /** The text shown to the approver, as the requester may see it. Empty with `changeSet`, which is read again. */
  readonly preview: Members;
  /** The class and row of the call, when there is one. */
  readonly className?: string;
  readonly objectId?: string;
  /** The change set of the call, when it is about one. */
  readonly changeSet?: string;
  /** The classes of the rows of that set. */
  readonly classNames?: readonly string[];
  readonly correlationId?: string;
  /** For the record of the decision: the digest of the arguments as in that of the call, and the policy that asked. */
  readonly argsDigest?: string;
  readonly policyVersion?: string;
}

export interface CaseDecision {
  readonly approved: boolean;
  /** The principal of the approver. */
  readonly by: string;
  /** Name of the agent of the approver. Absent: nobody decided. */
  readonly agent?: string;
  readonly reason?: string;
  /** Nobody decided: what was asked about is over. */
  readonly withdrawn?: true;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** Topic on which replicas announce decisions: `{ id }` of the case. */
export const APPROVAL_DECIDED = 'approval-decided';

export interface ApprovalCase extends ApprovalDraft {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly requestedAt: number;
  /** When the case expires: undecided, or decided and not used. */
  readonly expiresAt: number;
  readonly status: 'pending' | 'approved' | 'denied' | 'used';
  readonly decision?: CaseDecision;
}

/** One requester has too many undecided cases. */
export class ApprovalStoreFull extends Error {
  override readonly name = 'ApprovalStoreFull';
  constructor() {
    super('too many approvals are pending');
  }
}

/** Undecided cases that one requester may have. */
export const MAX_PENDING = 50;
/** Cases listed at once. */
export const MAX_LISTED = 200;

/** Cases of a tenant that are looked through. */
const MAX_READ = 100_000;

/** Every undecided case of a tenant, the first to expire first. @throws SharedStateUnavailable */
export async function* readPending(
  store: Pick<ApprovalStore, 'listPending'>,
  tenant: string | number | null,
): AsyncGenerator<ApprovalCase> {
  for (let read = 0; read < MAX_READ; read += MAX_LISTED) {
    const listed = await store.listPending(tenant, read);
    yield* listed;
    if (listed.length === 0) return;
  }
}

/**
 * Cases that wait for a person, the same on every replica. The store does not check who may decide. Each requester has a
 * share of undecided cases, beyond which another is refused, and one of decided cases, beyond which the one decided longest
 * ago is removed: an approval can then no longer be used, and a denied call may be requested again.
 */
export abstract class ApprovalStore {
  /**
   * Opens a case, or finds the one with the same subject that is undecided, denied, or approved and not used yet.
   * @param ttl milliseconds until it expires; an approval restarts the time, so that the call can use it
   * @throws ApprovalStoreFull. @throws SharedStateUnavailable
   */
  abstract open(
    draft: ApprovalDraft,
    ttl: number,
  ): Promise<{ readonly opened: ApprovalCase; readonly isNew: boolean }>;
  /** `undefined` also once it has expired. @throws SharedStateUnavailable */
  abstract find(id: string): Promise<ApprovalCase | undefined>;
  /**
   * At most `MAX_LISTED` undecided cases of a tenant, the first to expire first.
   * @param skip so many are left out before them. Default: none. @throws SharedStateUnavailable
   */
  abstract listPending(tenant: string | number | null, skip?: number): Promise<readonly ApprovalCase[]>;
  /** Number of undecided cases of all tenants. @throws SharedStateUnavailable */
  abstract countPending(): Promise<number>;
  /** Only the first decision counts, on whichever replica it arrives. @throws SharedStateUnavailable */
  abstract decide(id: string, decision: CaseDecision): Promise<'decided' | 'decided_before' | 'unknown'>;
  /** Consumes an approval: true for one call, false for every other. @throws SharedStateUnavailable */
  abstract use(id: string): Promise<boolean>;
}
