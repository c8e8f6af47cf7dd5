import { type Agent, type CallContext, Refused } from '#agent';
import type { ApprovalCase } from '#cluster';
import type { GovernedMethods } from '#data';
import type { RecordsSource } from '#dispatcher';

type Members = Readonly<Record<string, unknown>>;

/** A case as an approver sees it. */
export interface ApprovalView {
  readonly id: string;
  readonly status: ApprovalCase['status'];
  readonly tool: string;
  readonly permission: string;
  readonly requester: { readonly principal: string; readonly agent: string };
  /** Whether it is the viewer's own, which somebody else has to decide. */
  readonly own: boolean;
  readonly requested_at: string;
  readonly expires_at: string;
  readonly decision?: {
    readonly decision: 'approve' | 'deny';
    readonly by: string;
    readonly reason?: string;
  };
}

export interface DetailedApprovalView extends ApprovalView {
  /** What would change, as far as both the requester and the viewer may read it. */
  readonly preview: Members;
}

export function summaryOf(known: ApprovalCase, viewer: Agent): ApprovalView {
  const { id, status, tool, permission, requester, decision } = known;
  return {
    id,
    status,
    tool,
    permission,
    requester: { principal: requester.principal, agent: requester.agent },
    own: requester.principal === viewer.principal,
    requested_at: new Date(known.requestedAt).toISOString(),
    expires_at: new Date(known.expiresAt).toISOString(),
    ...(decision && {
      decision: {
        decision: decision.approved ? ('approve' as const) : ('deny' as const),
        by: decision.by,
        ...(decision.reason !== undefined && { reason: decision.reason }),
      },
    }),
  };
}

const isObject = (value: unknown): value is Members =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Members of a change that hold values of a row, wherever a preview has them. */
const ROWS = ['before', 'after'];
/** Arguments that hold them. */
const WRITTEN = ['fields', 'data'];

/** Cuts plain values to what the caller of a context may be shown. */
export type Presenting = (context: CallContext) => Pick<GovernedMethods, 'present'>;

/** Narrows what the requester may see to what the viewer may: whoever approves learns no more than by reading. */
export class CaseViews {
  constructor(
    private readonly records: RecordsSource,
    private readonly presenting: Presenting,
  ) {}

  async detailed(known: ApprovalCase, viewer: Agent, signal: AbortSignal): Promise<DetailedApprovalView> {
    return { ...summaryOf(known, viewer), preview: await this.previewFor(known, viewer, signal) };
  }

  private async previewFor(known: ApprovalCase, viewer: Agent, signal: AbortSignal): Promise<Members> {
    const { className, objectId, preview } = known;
    if (className === undefined) return preview;
    const context: CallContext = { agent: viewer, signal, progress: () => undefined };
    const readable = await this.fieldsOf(className, objectId, context);
    if (!readable) return { tool: known.tool, preview_error: 'of a class or row that you may not read' };
    const narrow = new Narrowing(new Set(readable), (row) => this.presenting(context).present(row));
    return narrow.preview(preview, readsEverything(viewer));
  }

  private async fieldsOf(
    className: string,
    objectId: string | undefined,
    context: CallContext,
  ): Promise<readonly string[] | null> {
    const records = this.records.for(context);
    try {
      const { fields } = await records.describe(className);
      if (objectId === undefined) return fields;
      const [row] = (await records.getMany(className, [objectId])).rows;
      return row ? fields : null;
    } catch (error) {
      if (error instanceof Refused) return null;
      throw error;
    }
  }
}

/** Whether only what the policy keeps from everybody is kept from this agent. */
function readsEverything({ identity, shape }: Agent): boolean {
  return (
    identity.kind === 'master' && !shape.clientMode && !shape.classes.isActive && shape.filters.size === 0
  );
}

class Narrowing {
  private readonly withheld = new Set<string>();

  constructor(
    private readonly readable: ReadonlySet<string>,
    /** Withholds pointers to classes that the viewer may not know. */
    private readonly present: (row: Members) => Promise<unknown>,
  ) {}

  /** @param whole whether the viewer may see what a method told the requester: no field of it says where it was read */
  async preview(preview: Members, whole: boolean): Promise<Members> {
    const { change, args, result, ...others } = preview;
    const shown = {
      ...others,
      ...(args !== undefined && { args: await this.members(args, WRITTEN) }),
      ...(change !== undefined && { change: await this.members(change, ROWS) }),
      ...(result !== undefined && whole && { result }),
    };
    if (result !== undefined && !whole) this.withheld.add('result');
    return this.withheld.size === 0 ? shown : { ...shown, withheld_from_you: [...this.withheld].sort() };
  }

  private async members(held: unknown, rows: readonly string[]): Promise<unknown> {
    if (!isObject(held)) return held;
    const narrowed = Object.entries(held).map(async ([name, value]) => [
      name,
      rows.includes(name) ? await this.row(value) : value,
    ]);
    return Object.fromEntries(await Promise.all(narrowed)) as Members;
  }

  private async row(row: unknown): Promise<unknown> {
    if (!isObject(row)) return row;
    const kept = Object.entries(row).filter(
      ([name]) => this.readable.has(name) || (this.withheld.add(name), false),
    );
    return this.present(Object.fromEntries(kept));
  }
}
