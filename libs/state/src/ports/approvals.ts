type Members = Readonly<Record<string, unknown>>;

/** What is put before an approver. Plain JSON: it outlives the process that asked. */
export interface ApprovalDraft {
  readonly requester: {
    readonly principal: string;
    readonly agent: string;
    readonly tenant: string | number | null;
  };
  readonly tool: string;
  /** The tier that the call acts at. */
  readonly permission: string;
  /** Names the call: who, what, with which arguments. One case is open upon a subject at a time. */
  readonly subject: string;
  /** Names what was shown: when that is different, the decision counts for nothing. */
  readonly holdsFor: string;
  /** What is shown, as the requester may see it. */
  readonly preview: Members;
  /** The class and row that it is about, when there is one. */
  readonly className?: string;
  readonly objectId?: string;
  readonly correlationId?: string;
}

export interface CaseDecision {
  readonly approved: boolean;
  /** The principal of the approver. */
  readonly by: string;
  readonly reason?: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface ApprovalCase extends ApprovalDraft {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly requestedAt: number;
  /** When it is forgotten: undecided, or decided and not used. */
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

/**
 * Cases that wait for a person, the same on every replica. Whoever may decide is not judged here. Each requester has a share of
 * undecided cases, beyond which another is refused, and one of decided cases, beyond which the one decided longest ago is
 * forgotten: an approval can then no longer be used, and what was denied may be asked anew.
 */
export abstract class ApprovalDesk {
  /**
   * Opens a case, or finds the one upon the same subject that is undecided, denied, or approved and not used yet.
   * @param ttl milliseconds until it expires; a decision in favour starts the time anew, for the call to use it
   * @throws ApprovalStoreFull. @throws SharedStateUnavailable
   */
  abstract open(
    draft: ApprovalDraft,
    ttl: number,
  ): Promise<{ readonly opened: ApprovalCase; readonly isNew: boolean }>;
  /** `undefined` also once it has expired. @throws SharedStateUnavailable */
  abstract find(id: string): Promise<ApprovalCase | undefined>;
  /** Undecided cases of a tenant, the first to expire first. @throws SharedStateUnavailable */
  abstract pending(tenant: string | number | null): Promise<readonly ApprovalCase[]>;
  /** Undecided cases of all tenants; null where counting them would mean reading them all. */
  waiting(): number | null {
    return null;
  }
  /** The first decision counts, whichever replica it comes to. @throws SharedStateUnavailable */
  abstract decide(id: string, decision: CaseDecision): Promise<'decided' | 'decided_before' | 'unknown'>;
  /** Uses an approval up: true for one call, false for every other. @throws SharedStateUnavailable */
  abstract use(id: string): Promise<boolean>;
}
