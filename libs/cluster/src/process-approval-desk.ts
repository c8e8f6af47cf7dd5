import { randomUUID } from 'node:crypto';
import {
  type ApprovalCase,
  ApprovalDesk,
  ApprovalDeskFull,
  type ApprovalDraft,
  type DeskDecision,
  MAX_LISTED,
  MAX_PENDING,
} from './approval-desk.js';
import { steadyClock } from './steady-clock.js';

interface Held {
  readonly known: ApprovalCase;
  readonly ttl: number;
}

/** Cases in this process's memory: they serve one process only and end with it. */
export class ProcessApprovalDesk extends ApprovalDesk {
  private readonly cases = new Map<string, Held>();
  /** By subject. */
  private readonly open_ = new Map<string, string>();

  /** @param maxCases kept at once, decided ones included. Default 10,000 */
  constructor(
    private readonly maxCases = 10_000,
    private readonly now: () => number = steadyClock,
  ) {
    super();
  }

  open(draft: ApprovalDraft, ttl: number): Promise<{ opened: ApprovalCase; isNew: boolean }> {
    const id = this.open_.get(draft.subject);
    const open = id === undefined ? undefined : this.live(id);
    if (open) return Promise.resolve({ opened: open.known, isNew: false });
    this.forgetExpired();
    if (this.cases.size >= this.maxCases || this.pendingOf(draft.requester.principal) >= MAX_PENDING)
      return Promise.reject(new ApprovalDeskFull());
    const requestedAt = this.now();
    const opened: ApprovalCase = Object.freeze({
      ...structuredClone(draft),
      id: randomUUID(),
      requestedAt,
      expiresAt: requestedAt + ttl,
      status: 'pending' as const,
    });
    this.cases.set(opened.id, { known: opened, ttl });
    this.open_.set(draft.subject, opened.id);
    return Promise.resolve({ opened, isNew: true });
  }

  find(id: string): Promise<ApprovalCase | undefined> {
    return Promise.resolve(this.live(id)?.known);
  }

  override waiting(): number {
    this.forgetExpired();
    return [...this.cases.values()].filter(({ known }) => known.status === 'pending').length;
  }

  pending(tenant: string | number | null): Promise<readonly ApprovalCase[]> {
    this.forgetExpired();
    const found = [...this.cases.values()]
      .map(({ known }) => known)
      .filter(({ status, requester }) => status === 'pending' && requester.tenant === tenant)
      .sort((a, b) => a.expiresAt - b.expiresAt);
    return Promise.resolve(found.slice(0, MAX_LISTED));
  }

  decide(id: string, decision: DeskDecision): Promise<'decided' | 'decided_before' | 'unknown'> {
    const held = this.live(id);
    if (!held) return Promise.resolve('unknown');
    if (held.known.status !== 'pending') return Promise.resolve('decided_before');
    const { approved } = decision;
    this.change(held, {
      status: approved ? 'approved' : 'denied',
      decision,
      ...(approved && { expiresAt: this.now() + held.ttl }),
    });
    return Promise.resolve('decided');
  }

  use(id: string): Promise<boolean> {
    const held = this.live(id);
    if (held?.known.status !== 'approved') return Promise.resolve(false);
    this.change(held, { status: 'used' });
    if (this.open_.get(held.known.subject) === id) this.open_.delete(held.known.subject);
    return Promise.resolve(true);
  }

  private change({ known, ttl }: Held, to: Partial<ApprovalCase>): void {
    this.cases.set(known.id, { known: Object.freeze({ ...known, ...to }), ttl });
  }

  private live(id: string): Held | undefined {
    const held = this.cases.get(id);
    if (!held || held.known.expiresAt > this.now()) return held;
    this.forget(held.known);
    return undefined;
  }

  private pendingOf(principal: string): number {
    let count = 0;
    for (const { known } of this.cases.values())
      if (known.status === 'pending' && known.requester.principal === principal) count++;
    return count;
  }

  private forgetExpired(): void {
    const now = this.now();
    for (const { known } of this.cases.values()) if (known.expiresAt <= now) this.forget(known);
  }

  private forget({ id, subject }: ApprovalCase): void {
    this.cases.delete(id);
    if (this.open_.get(subject) === id) this.open_.delete(subject);
  }
}
