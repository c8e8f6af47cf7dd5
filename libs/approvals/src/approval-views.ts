import { type Agent, isFailure, Refused, McpRequest, isJsonObject } from '#core';
import type { ChangeViews, GovernedMethods } from '#data';
import { canonicalJson, computeDigest, type RecordsSource, showToApprover } from '#dispatcher';
import type { ApprovalCase } from '#state';
import type { Changes } from '#tools';

type Members = Readonly<Record<string, unknown>>;

/** A case as an approver sees it. */
export interface ApprovalView {
  readonly id: string;
  readonly status: ApprovalCase['status'];
  readonly tool: string;
  /** The class of the planned change; absent for a tool of an application that changes none of its own. */
  readonly class_name?: string;
  readonly change_set?: string;
  readonly permission: string;
  readonly requester: {
    readonly principal: string;
    /** Name of the key that it called with, where that has one. */
    readonly key_name?: string;
    readonly agent: string;
  };
  /** Whether it is the viewer's own request, which another person has to decide. */
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
  /** The planned change, as far as both requester and viewer may read it. */
  readonly preview: Members;
  /** Of what this viewer is shown here. A decision has to carry it. */
  readonly digest: string;
}

export function summarizeApproval(known: ApprovalCase, viewer: Agent): ApprovalView {
  const { id, status, tool, permission, requester, decision } = known;
  return {
    id,
    status,
    tool,
    ...(known.className !== undefined && { class_name: known.className }),
    ...(known.changeSet !== undefined && { change_set: known.changeSet }),
    permission,
    requester: {
      principal: requester.principal,
      ...(known.keyName !== undefined && { key_name: known.keyName }),
      agent: requester.agent,
    },
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

/** Members of a change with values of a row. */
const ROWS = ['before', 'after'];
/** Arguments with values of a row. */
const WRITTEN_MEMBERS = ['fields', 'data'];

/** What the caller of a context may read. */
interface Viewing {
  /** Restricts values. */
  readonly methods: (context: McpRequest) => Pick<GovernedMethods, 'present'>;
  readonly changes: (context: McpRequest) => Promise<Pick<ChangeViews, 'view'>>;
}

interface Shown {
  readonly preview: Members;
  /** Identifies what is shown, the row as it is now, and to whom: any other view has another one. */
  readonly digest: string;
  /** False where the viewer may not read the class or the row. */
  readonly isReadable: boolean;
}

/** Restricts a preview to what the viewer may read, so that approving reveals no more than reading. */
export class CaseViews {
  constructor(
    private readonly records: RecordsSource,
    private readonly viewing: Viewing,
    private readonly changes: Pick<Changes, 'showTo'>,
  ) {}

  async showCase(known: ApprovalCase, viewer: Agent, signal: AbortSignal): Promise<Shown> {
    const context = new McpRequest(viewer, { signal });
    const { className, preview, changeSet } = known;
    if (changeSet !== undefined) return this.showSet(known, changeSet, context);
    if (className === undefined) return toShown(known, viewer, preview, null);
    const readable = await this.readable(className, known, context);
    if (typeof readable === 'string') return unreadable(known, viewer, readable);
    const narrow = new Narrowing(new Set(readable.fields), (row) =>
      this.viewing.methods(context).present(row),
    );
    const shown = await narrow.preview(preview, readsEverything(viewer));
    return toShown(known, viewer, withPresentValues(shown, readable.row), readable.row ?? null);
  }

  /** A whole change set, read again for the viewer: what its owner was shown is the owner's. */
  private async showSet(known: ApprovalCase, changeSet: string, context: McpRequest): Promise<Shown> {
    const { agent } = context;
    const set = await this.changes.showTo(changeSet, context).catch(describeRefusal);
    if (typeof set === 'string') return unreadable(known, agent, set);
    if (set === null) return unreadable(known, agent, 'this change set waits for nobody any more');
    const { digest, shown, isReadable } = set;
    return { ...toShown(known, agent, { tool: known.tool, ...shown }, { digest }), isReadable };
  }

  /** What the viewer may read of it, or why nothing. */
  private async readable(
    className: string,
    { tool, objectId, preview }: ApprovalCase,
    context: McpRequest,
  ): Promise<{ readonly fields: readonly string[]; readonly row?: Members } | string> {
    const records = this.records.for(context);
    try {
      const { fields } = await records.describe(className);
      if (objectId === undefined && tool === 'call_method') return { fields };
      if (objectId === undefined)
        return (await this.mayReadNew(className, preview, context)) ? { fields } : NOT_PERMITTED;
      const [row] = (await records.getMany(className, [objectId])).rows;
      return row ? { fields, row } : NOT_PERMITTED;
    } catch (error) {
      return describeRefusal(error);
    }
  }

  /** Whether the viewer could read the new row. What is not shown of it counts as no. */
  private async mayReadNew(className: string, { change }: Members, context: McpRequest): Promise<boolean> {
    const written = isJsonObject(change) ? change['after'] : undefined;
    const fields = isJsonObject(written) ? written : {};
    const views = await this.viewing.changes(context);
    const [viewed] = await views.view([
      { operation: 'create', className, objectId: null, fields, before: null },
    ]);
    return viewed?.isReadable ?? false;
  }
}

const NOT_PERMITTED = 'of a class or row that you may not read';

/** Why nothing is shown. @throws what is no refusal */
function describeRefusal(error: unknown): string {
  if (!(error instanceof Refused)) throw error;
  return isFailure(error.refusal.code)
    ? 'it cannot be read at the moment: try again in a few seconds'
    : NOT_PERMITTED;
}

/**
 * A change whose row is not as the caller found it also shows what the fields hold by now, as the viewer reads them. An approval of it
 * runs nothing: the call has to be made again.
 */
function withPresentValues(preview: Members, row: Members | undefined): Members {
  const { change } = preview;
  const before = isJsonObject(change) ? change['before'] : undefined;
  if (!row || !isJsonObject(change) || !isJsonObject(before)) return preview;
  const changed = Object.keys(before).filter((name) => isOtherThan(before[name], row[name] ?? null));
  if (changed.length === 0) return preview;
  const held = Object.fromEntries(changed.map((name) => [name, row[name] ?? null]));
  const { now = {}, preview_error: why } = showToApprover({ now: held });
  const unshown = Object.fromEntries(changed.map((name) => [name, why]));
  return { ...preview, change: { ...change, now: why === undefined ? now : unshown } };
}

/** @param shown as it was shown to the approver before */
function isOtherThan(shown: unknown, value: unknown): boolean {
  const { value: now } = showToApprover({ value });
  return now === undefined || canonicalJson(now) !== canonicalJson(shown);
}

function unreadable(known: ApprovalCase, viewer: Agent, why: string): Shown {
  const preview = { tool: known.tool, preview_error: why };
  return { ...toShown(known, viewer, preview, null), isReadable: false };
}

/** Times are left out: replicas may count them differently. @param row as the viewer may read it now */
function toShown(known: ApprovalCase, viewer: Agent, preview: Members, row: Members | null): Shown {
  const { id, tool, permission, className, objectId, requester, holdsFor } = known;
  const about = { id, tool, permission, className, objectId, requester, holdsFor };
  const digest = computeDigest({ viewer: viewer.principal, about, preview, row });
  return { preview, digest, isReadable: true };
}

/** Whether this agent may read everything except what the policy hides from all agents. */
function readsEverything({ identity, definition }: Agent): boolean {
  return (
    identity.kind === 'master' &&
    !definition.clientMode &&
    !definition.classes.isActive &&
    definition.filters.size === 0
  );
}

class Narrowing {
  private readonly withheld = new Set<string>();

  constructor(
    private readonly readable: ReadonlySet<string>,
    /** Removes pointers to classes that the viewer may not know. */
    private readonly present: (row: Members) => Promise<unknown>,
  ) {}

  /** @param whole whether the viewer may see the result of a method, whose fields have no known origin */
  async preview(preview: Members, whole: boolean): Promise<Members> {
    const { change, args, result, ...others } = preview;
    const shown = {
      ...others,
      ...(args !== undefined && { args: await this.members(args, WRITTEN_MEMBERS) }),
      ...(change !== undefined && { change: await this.members(change, ROWS) }),
      ...(result !== undefined && whole && { result }),
    };
    if (result !== undefined && !whole) this.withheld.add('result');
    return this.withheld.size === 0 ? shown : { ...shown, withheld_from_you: [...this.withheld].sort() };
  }

  private async members(held: unknown, rows: readonly string[]): Promise<unknown> {
    if (!isJsonObject(held)) return held;
    const narrowed = Object.entries(held).map(async ([name, value]) => [
      name,
      rows.includes(name) ? await this.row(value) : value,
    ]);
    return Object.fromEntries(await Promise.all(narrowed)) as Members;
  }

  private async row(row: unknown): Promise<unknown> {
    if (!isJsonObject(row)) return row;
    const kept = Object.entries(row).filter(
      ([name]) => this.readable.has(name) || (this.withheld.add(name), false),
    );
    return this.present(Object.fromEntries(kept));
  }
}
