import { randomUUID } from 'node:crypto';
import {
  type ApprovalCase,
  ApprovalStore,
  ApprovalStoreFull,
  type ApprovalDraft,
  type CaseDecision,
  MAX_LISTED,
  MAX_PENDING,
} from '../ports/approvals.js';
import { DECIDED_SHARE, steadyClock } from '../ports/stores.js';

interface Held {
  readonly known: ApprovalCase;
  readonly ttl: number;
}

/** Cases in this process's memory: they serve one process only and are lost with it. */
export class ProcessApprovalStore extends ApprovalStore {
  private readonly cases = new Map<string, Held>();
  private readonly openBySubject = new Map<string, string>();
  /** Ids of the decided cases of each requester, the one decided longest ago first. */
  private readonly decided = new Map<string, Set<string>>();

  /**
   * @param maxCases kept at once. When there are more, the requester with the most decided cases loses the one decided longest
   * ago; undecided cases are never lost. Default 10,000
   * @param share of decided cases of each requester
   */
  constructor(
    private readonly maxCases = 10_000,
    private readonly now: () => number = steadyClock,
    private readonly share = DECIDED_SHARE,
  ) {
    super();
  }

  open(draft: ApprovalDraft, ttl: number): Promise<{ opened: ApprovalCase; isNew: boolean }> {
    const id = this.openBySubject.get(draft.subject);
    const open = id === undefined ? undefined : this.live(id);
    if (open) return Promise.resolve({ opened: open.known, isNew: false });
    this.forgetExpired();
    if (this.countPendingFor(draft.requester.principal) >= MAX_PENDING || !this.makeRoom())
      return Promise.reject(new ApprovalStoreFull());
    const requestedAt = this.now();
    const opened: ApprovalCase = Object.freeze({
      ...structuredClone(draft),
      id: randomUUID(),
      requestedAt,
      expiresAt: requestedAt + ttl,
      status: 'pending' as const,
    });
    this.cases.set(opened.id, { known: opened, ttl });
    this.openBySubject.set(draft.subject, opened.id);
    return Promise.resolve({ opened, isNew: true });
  }

  find(id: string): Promise<ApprovalCase | undefined> {
    return Promise.resolve(this.live(id)?.known);
  }

  countPending(): Promise<number> {
    this.forgetExpired();
    return Promise.resolve([...this.cases.values()].filter(({ known }) => known.status === 'pending').length);
  }

  listPending(tenant: string | number | null, skip = 0): Promise<readonly ApprovalCase[]> {
    this.forgetExpired();
    const found = [...this.cases.values()]
      .map(({ known }) => known)
      .filter(({ status, requester }) => status === 'pending' && requester.tenant === tenant)
      .sort((a, b) => a.expiresAt - b.expiresAt);
    return Promise.resolve(found.slice(skip, skip + MAX_LISTED));
  }

  decide(id: string, decision: CaseDecision): Promise<'decided' | 'decided_before' | 'unknown'> {
    const held = this.live(id);
    if (!held) return Promise.resolve('unknown');
    if (held.known.status !== 'pending') return Promise.resolve('decided_before');
    const { approved } = decision;
    this.change(held, {
      status: approved ? 'approved' : 'denied',
      decision,
      ...(approved && { expiresAt: this.now() + held.ttl }),
    });
    this.countDecided(held.known);
    return Promise.resolve('decided');
  }

  use(id: string): Promise<boolean> {
    const held = this.live(id);
    if (held?.known.status !== 'approved') return Promise.resolve(false);
    this.change(held, { status: 'used' });
    if (this.openBySubject.get(held.known.subject) === id) this.openBySubject.delete(held.known.subject);
    return Promise.resolve(true);
  }

  private change({ known, ttl }: Held, to: Partial<ApprovalCase>): void {
    this.cases.set(known.id, { known: Object.freeze({ ...known, ...to }), ttl });
  }

  private countDecided({ id, requester: { principal } }: ApprovalCase): void {
    const ids = this.decided.get(principal) ?? new Set<string>();
    this.decided.set(principal, ids.add(id));
    if (ids.size > (this.share.entries ?? Infinity)) this.forgetOldest(ids);
  }

  /** @returns false when every case is undecided */
  private makeRoom(): boolean {
    while (this.cases.size >= this.maxCases) {
      let most: ReadonlySet<string> = new Set();
      for (const ids of this.decided.values()) if (ids.size > most.size) most = ids;
      if (most.size === 0) return false;
      this.forgetOldest(most);
    }
    return true;
  }

  private forgetOldest(ids: ReadonlySet<string>): void {
    const [oldest] = ids;
    const held = oldest === undefined ? undefined : this.cases.get(oldest);
    if (held) this.forget(held.known);
  }

  private live(id: string): Held | undefined {
    const held = this.cases.get(id);
    if (!held || held.known.expiresAt > this.now()) return held;
    this.forget(held.known);
    return undefined;
  }

  private countPendingFor(principal: string): number {
    let count = 0;
    for (const { known } of this.cases.values())
      if (known.status === 'pending' && known.requester.principal === principal) count++;
    return count;
  }

  private forgetExpired(): void {
    const now = this.now();
    for (const { known } of this.cases.values()) if (known.expiresAt <= now) this.forget(known);
  }

  private forget({ id, subject, requester: { principal } }: ApprovalCase): void {
    this.cases.delete(id);
    const decided = this.decided.get(principal);
    decided?.delete(id);
    if (decided?.size === 0) this.decided.delete(principal);
    if (this.openBySubject.get(subject) === id) this.openBySubject.delete(subject);
  }
}
