import { type Agent, type CallContext, Refused } from '#agent';
import type { ApprovalCase } from '#cluster';
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
const ROWS = ['before', 'after'] as const;

/** Narrows what the requester may see to what the viewer may: whoever approves learns no more than by reading. */
export class CaseViews {
  constructor(private readonly records: RecordsSource) {}

  async detailed(known: ApprovalCase, viewer: Agent, signal: AbortSignal): Promise<DetailedApprovalView> {
    return { ...summaryOf(known, viewer), preview: await this.previewFor(known, viewer, signal) };
  }

  private async previewFor(known: ApprovalCase, viewer: Agent, signal: AbortSignal): Promise<Members> {
    const { className, objectId, preview } = known;
    if (className === undefined) return preview;
    const context: CallContext = { agent: viewer, signal, progress: () => undefined };
    const readable = await this.fieldsOf(className, objectId, context);
    if (!readable) return { tool: known.tool, preview_error: 'of a class or row that you may not read' };
    return narrowed(preview, new Set(readable));
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

function narrowed(preview: Members, readable: ReadonlySet<string>): Members {
  const withheld = new Set<string>();
  const cut = (row: unknown) => {
    if (!isObject(row)) return row;
    return Object.fromEntries(
      Object.entries(row).filter(([name]) => readable.has(name) || (withheld.add(name), false)),
    );
  };
  const { change, args } = preview;
  const shown = {
    ...preview,
    ...(isObject(change) && {
      change: {
        ...change,
        ...Object.fromEntries(ROWS.filter((name) => name in change).map((name) => [name, cut(change[name])])),
      },
    }),
    ...(isObject(args) && {
      args: Object.fromEntries(
        Object.entries(args).map(([name, value]) => [
          name,
          name === 'fields' || name === 'data' ? cut(value) : value,
        ]),
      ),
    }),
  };
  return withheld.size === 0 ? shown : { ...shown, withheld_from_you: [...withheld].sort() };
}
