import { Inject, Injectable } from '@nestjs/common';
import { type McpRequest, Refused, refuse } from '#core';
import {
  type ChangeSet,
  ChangeSets,
  GovernedChangesSource,
  type HeldChange,
  type ParleyChanges,
  type ProposedWrite,
  type StoredEntry,
} from '#data';
import { showChange } from '#dispatcher';
import {
  type AppliedSet,
  Changes,
  type ProposedAnswer,
  type SetPreview,
  type ShownChangeSet,
  type ShownEntry,
  type ToolCall,
  type ViewedSet,
} from '#tools';
import { ChangeRecords } from './change-records.js';
import { ChangeSeal, digestSet, listClasses, nameKeys } from './change-seal.js';
import { type OpenSet, OpenSets } from './open-sets.js';
import {
  CHANGE_SETTINGS,
  type ChangeSettings,
  CONTENDED_TRIES,
  isOfTenant,
  isWaiting,
  OwnedSets,
  tooContended,
} from './owned-sets.js';
import {
  countRows,
  describeSet,
  fitEntries,
  nameRows,
  showApplied,
  showBareEntry,
  showEntry,
  showHiddenEntry,
  showSet,
  showViewed,
} from './shown-sets.js';
import { SetApplication } from './set-application.js';
import { SetUndo } from './set-undo.js';
import { SetSubmissions } from './set-submissions.js';
import { findKeyed, readKey, type WriteKey } from './write-key.js';

/** Reading for an approver. */
const VIEWING = { tool: 'approvals', timeout: 20 };

/** Milliseconds for which the key of a write stands for it once its set is applied. */
const KEY_LIFETIME = 24 * 3_600_000;

/** Sets that may have had the key of a write: more than one only where the others were left without it. */
const LISTED_SETS = 100;

/** The change sets of agents whose writes are proposed. */
@Injectable()
export class StoredChanges extends Changes {
  constructor(
    private readonly source: GovernedChangesSource,
    private readonly sets: ChangeSets,
    private readonly owned: OwnedSets,
    private readonly openSets: OpenSets,
    private readonly seal: ChangeSeal,
    private readonly submissions: SetSubmissions,
    private readonly application: SetApplication,
    private readonly undo: SetUndo,
    private readonly records: ChangeRecords,
    @Inject(CHANGE_SETTINGS) private readonly settings: ChangeSettings,
  ) {
    super();
  }

  async propose(write: ProposedWrite, call: ToolCall, key?: unknown): Promise<ProposedAnswer> {
    const governed = await this.open(call);
    const asked = key === undefined ? null : readKey(key, write);
    return this.openSets.inTurn(call, async () => {
      for (let tries = 0; tries < CONTENDED_TRIES; tries += 1) {
        const open = await this.openSets.find(call, tries === 0);
        try {
          const answer = await this.proposeIn(open, { write, governed, key: asked }, call);
          if (answer) return answer;
        } catch (error) {
          // The set may be another one by now, in which the write has its place.
          if (!open.isKnown) throw error;
        }
      }
      throw tooContended();
    });
  }

  /** @returns null where the set has to be read again: it is another one by now, or its values are needed */
  private async proposeIn(
    open: OpenSet,
    { write, governed, key }: Proposal,
    call: ToolCall,
  ): Promise<ProposedAnswer | null> {
    const { set } = open;
    const again = key && (await this.findMadeBefore(set, key, call));
    if (again) return open.isKnown ? null : this.answerAgain(...again, call);
    const about = listAbout(set, write);
    if (about.length > 0 && open.isKnown) return null;
    const held = await this.openEntries(set, about);
    const find = (className: string, objectId: string) =>
      held.find(({ change }) => change.className === className && change.objectId === objectId);
    const { change, judged } = await governed.propose(
      write,
      (className, objectId) => find(className, objectId)?.change ?? null,
      set.entries.map(({ className }) => className),
    );
    const known = find(judged.className, judged.objectId ?? '')?.stored;
    const entry = known?.entry ?? set.next;
    if (!(await this.store(open, { entry, known, change, key }, call))) return null;
    call.belongsTo(set.id);
    const row = { id: set.id, kind: set.kind, owner: set.owner, entries: change ? [change] : [] };
    this.records.record(
      { ...row, entries: row.entries.map((one) => ({ ...one, entry, fields: [] })) },
      'proposed',
      call,
    );
    const { before, after } = showChange(write.operation, judged);
    return {
      proposed: true,
      change_set: set.id,
      entry: change ? entry : null,
      class_name: judged.className,
      object_id: judged.objectId,
      ...(before && { before }),
      ...(after && { after }),
    };
  }

  /** @returns false when another call has changed the set since it was read */
  private async store(
    open: OpenSet,
    row: {
      readonly entry: number;
      readonly known: StoredEntry | undefined;
      readonly change: HeldChange | null;
      readonly key: WriteKey | null;
    },
    call: ToolCall,
  ): Promise<boolean> {
    const { entry, known, change, key } = row;
    const { set } = open;
    const others = open.bytes - (known?.sealed?.length ?? 0);
    if (!change) return this.openSets.change(open, { remove: [entry] }, others, call);
    const sealed = { ...(await this.seal.seal(set.id, entry, change)), ...nameKeys(call.agent, known) };
    const keys = { ...known?.keys, ...(key && { [key.key]: key.digest }) };
    const stored = Object.keys(keys).length > 0 ? { ...sealed, keys } : sealed;
    const bytes = others + (sealed.sealed?.length ?? 0);
    this.assertFits(set.entries.length + (known ? 0 : 1), bytes);
    return this.openSets.change(open, { put: [stored], next: Math.max(set.next, entry + 1) }, bytes, call);
  }

  private assertFits(rows: number, bytes: number): void {
    const { maxEntries, maxBytes } = this.settings;
    const full =
      rows > maxEntries
        ? `${maxEntries} rows (changes.maxEntries)`
        : bytes > maxBytes
          ? `${maxBytes} bytes (changes.maxBytes)`
          : null;
    if (full === null) return;
    throw refuse.invalidArgument(
      `the change set is full: it holds at most ${full}. Submit it, then propose the rest`,
    );
  }

  private openEntries(
    set: ChangeSet,
    entries: readonly StoredEntry[],
  ): Promise<readonly { readonly stored: StoredEntry; readonly change: HeldChange }[]> {
    return Promise.all(
      entries.map(async (stored) => ({ stored, change: await this.seal.open(set.id, stored) })),
    );
  }

  /** The entry that the same call made, in the open set or in one that was submitted since. @throws Refused for another write of this key */
  private async findMadeBefore(
    open: ChangeSet,
    key: WriteKey,
    call: ToolCall,
  ): Promise<readonly [ChangeSet, StoredEntry] | null> {
    const since = this.owned.now() - KEY_LIFETIME;
    // In the order in which a set goes through them: none is applied unseen.
    const waiting = await this.owned.list(call, LISTED_SETS, { key: key.key, states: ['submitted'] });
    const applied = await this.owned.list(call, LISTED_SETS, { key: key.key, states: ['applied'], since });
    for (const set of [open, ...waiting, ...applied]) {
      const found = findKeyed(set, key);
      if (!found) continue;
      const whole = set === open ? open : await this.owned.find(set.id, call);
      return [whole, whole.entries.find(({ entry }) => entry === found.entry) ?? found];
    }
    return null;
  }

  private async answerAgain(set: ChangeSet, stored: StoredEntry, call: ToolCall): Promise<ProposedAnswer> {
    call.belongsTo(set.id);
    const [shown] = await this.showEntries({ ...set, entries: [stored] }, call);
    const { before, after } = shown ?? {};
    return {
      proposed: true,
      change_set: set.id,
      entry: stored.entry,
      class_name: stored.className,
      object_id: stored.objectId,
      ...(before && { before }),
      ...(after && { after }),
    };
  }

  async list(call: ToolCall, limit: number): Promise<readonly ShownChangeSet[]> {
    return (await this.owned.list(call, limit)).map(showSet);
  }

  async show(id: string, call: ToolCall) {
    const set = await this.owned.find(id, call);
    call.belongsTo(set.id);
    return { ...showSet(set), entries: await this.showEntries(set, call) };
  }

  private async showEntries(set: ChangeSet, call: ToolCall): Promise<readonly ShownEntry[]> {
    const isSubAgent = call.agent.parent !== null;
    const isKept = set.entries.every(({ sealed }) => sealed !== undefined);
    if (!isKept && !isSubAgent) return set.entries.map(showBareEntry);
    const { views } = await this.open(call);
    if (!isKept) return nameRows(set, views);
    const held = await this.seal.openAll(set);
    const isApplied = set.state === 'applied';
    const viewed = isApplied || isSubAgent ? await views.view(held) : [];
    const reviewed = isApplied ? [] : await views.review(held);
    return set.entries.map((stored, at) => {
      // The agents above it have proposed rows, too.
      if (isSubAgent && !viewed[at]?.isReadable) return showHiddenEntry(stored);
      const one = reviewed[at];
      return one ? showEntry(stored, one) : showApplied(stored, viewed[at]);
    });
  }

  async discard(id: string, call: ToolCall): Promise<ShownChangeSet> {
    const set = await this.owned.find(id, call);
    call.belongsTo(set.id);
    if (set.state === 'applied')
      throw refuse.invalidArgument('the change set is applied: undo_changes takes it back');
    return showSet(await this.owned.end(id, call, 'discarded'));
  }

  async refresh(id: string, call: ToolCall) {
    const governed = await this.open(call);
    const refreshed = await this.owned.update(id, call, async (set) => {
      call.belongsTo(set.id);
      if (set.kind !== 'proposed' || !isWaiting(set))
        throw refuse.invalidArgument(`a change set that is ${set.state} cannot be refreshed`);
      const held = await this.seal.openAll(set);
      const put: StoredEntry[] = [];
      for (const [at, stored] of set.entries.entries()) {
        const change = held[at];
        const again = change && (await proposeAgain(governed, change));
        if (again) put.push({ ...stored, ...(await this.seal.seal(set.id, stored.entry, again)) });
      }
      return { put };
    });
    this.records.record(refreshed, 'proposed', call);
    return this.show(id, call);
  }

  prepare(tool: string, args: unknown, call: ToolCall): Promise<string> {
    return this.submissions.prepare(tool, args, call);
  }

  async preview(id: string, call: ToolCall): Promise<SetPreview> {
    const set = await this.owned.find(id, call);
    const entries = await this.showEntries(set, call);
    const shown = { ...describeSet(set), ...fitEntries(entries) };
    return { id, digest: digestSet(set), classNames: listClasses(set), shown, row: entries };
  }

  async showTo(id: string, approver: McpRequest): Promise<ViewedSet | null> {
    const found = await this.owned.atStore(() => this.sets.find(id));
    if (!found || !isOfTenant(found, approver.agent)) return null;
    const set = await this.owned.expire(found, approver);
    if (set.state !== 'submitted') return null;
    const governed = await this.source.open(approver, VIEWING);
    const viewed = await governed.views.view(await this.seal.openAll(set));
    const changes = set.entries.flatMap((stored, at) => {
      const one = viewed[at];
      return one ? [showViewed(stored, one)] : [];
    });
    return {
      digest: digestSet(set),
      shown: { ...describeSet(set), changes },
      isReadable: viewed.every(({ isReadable }) => isReadable),
    };
  }

  async deny(id: string, call: ToolCall): Promise<void> {
    await this.owned.end(id, call, 'denied');
  }

  async apply(call: ToolCall): Promise<AppliedSet> {
    const { changes: approved, by, id: approvalId } = call.approval ?? {};
    if (!approved) throw refuse.approvalDenied('nobody has approved this change set');
    const set = await this.owned.find(approved.id, call);
    call.belongsTo(set.id);
    if (set.state !== 'submitted' || digestSet(set) !== approved.digest)
      throw refuse.approvalDenied(`the change set is ${set.state} and no longer the one that was approved`);
    const approval = {
      ...(by !== undefined && { approver: by }),
      ...(approvalId && { approval_id: approvalId }),
    };
    this.records.record(set, 'approved', call, approval);
    await this.application.apply(set, await this.open(call), call, approval);
    const left = await this.undo.listLeftOut(set);
    return {
      change_set: set.id,
      applied: true,
      rows: countRows(set.entries),
      ...(left.length > 0 && { left_out: left.map(showBareEntry) }),
    };
  }

  private open(call: ToolCall): Promise<ParleyChanges> {
    const { tool } = call;
    return this.source.open(call, { tool: tool.name, timeout: tool.timeout });
  }
}

/** The change for the row as it is now; null: the same write is refused now, and the entry says so. */
async function proposeAgain(governed: ParleyChanges, held: HeldChange): Promise<HeldChange | null> {
  const { operation, className, objectId, fields } = held;
  // A new row is the same, whatever other rows there are by now.
  if (operation === 'create') return held;
  const write = { operation, className, objectId, fields } as ProposedWrite;
  try {
    return (await governed.propose(write, () => null)).change;
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

/** The entries that are about the row of a write. */
const listAbout = ({ entries }: ChangeSet, write: ProposedWrite): readonly StoredEntry[] =>
  write.operation === 'create'
    ? []
    : entries.filter(({ objectId }) => objectId !== null && objectId === write.objectId);

interface Proposal {
  readonly write: ProposedWrite;
  readonly governed: ParleyChanges;
  readonly key: WriteKey | null;
}
