import { createHash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { type McpRequest, refusals, Refused } from '#core';
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
import { ChangeSeal, digestSet } from './change-seal.js';
import {
  CHANGE_SETTINGS,
  type ChangeSettings,
  CONTENDED_TRIES,
  isWaiting,
  OwnedSets,
  tooContended,
} from './owned-sets.js';
import {
  countRows,
  describeSet,
  fitEntries,
  showApplied,
  showBareEntry,
  showEntry,
  showSet,
  showViewed,
} from './shown-sets.js';
import { SetApplication } from './set-application.js';
import { SetUndo } from './set-undo.js';
import { SetSubmissions } from './set-submissions.js';

/** Reading for an approver. */
const VIEWING = { tool: 'approvals', timeout: 20 };

/** Milliseconds for which the key of a write stands for it once its set is applied. */
const KEY_LIFETIME = 24 * 3_600_000;

/** Sets that are looked through for the key of a write. */
const LISTED_SETS = 100;

/** The change sets of agents whose writes are proposed. */
@Injectable()
export class StoredChanges extends Changes {
  constructor(
    private readonly source: GovernedChangesSource,
    private readonly sets: ChangeSets,
    private readonly owned: OwnedSets,
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
    for (let tries = 0; tries < CONTENDED_TRIES; tries += 1) {
      const set = await this.owned.open(call);
      const again = asked && (await this.findMadeBefore(set, asked, call));
      if (again) return this.answerAgain(...again, call);
      const held = await this.openRow(set, write);
      const find = (className: string, objectId: string) =>
        held.find(({ change }) => change.className === className && change.objectId === objectId);
      const { change, judged } = await governed.propose(
        write,
        (className, objectId) => find(className, objectId)?.change ?? null,
      );
      const known = find(judged.className, judged.objectId ?? '')?.stored;
      const entry = known?.entry ?? set.next;
      if (!(await this.store(set, { entry, known, change, keys: asked }))) continue;
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
    throw tooContended();
  }

  /** @returns false when another call has changed the set since it was read */
  private async store(
    set: ChangeSet,
    row: {
      readonly entry: number;
      readonly known: StoredEntry | undefined;
      readonly change: HeldChange | null;
      readonly keys: WriteKey | null;
    },
  ): Promise<boolean> {
    const { entry, known, change, keys } = row;
    if (!change) return this.owned.change(set, { remove: [entry] });
    const sealed = await this.seal.seal(set.id, entry, change);
    const named = { ...known?.keys, ...(keys && { [keys.key]: keys.digest }) };
    const stored = Object.keys(named).length > 0 ? { ...sealed, keys: named } : sealed;
    this.assertFits(set, stored);
    return this.owned.change(set, { put: [stored], next: Math.max(set.next, entry + 1) });
  }

  private assertFits({ entries }: ChangeSet, stored: StoredEntry): void {
    const { maxEntries, maxBytes } = this.settings;
    const others = entries.filter(({ entry }) => entry !== stored.entry);
    const bytes = [...others, stored].reduce((sum, { sealed = '' }) => sum + sealed.length, 0);
    const full =
      others.length >= maxEntries
        ? `${maxEntries} rows (changes.maxEntries)`
        : bytes > maxBytes
          ? `${maxBytes} bytes (changes.maxBytes)`
          : null;
    if (full === null) return;
    throw new Refused(
      refusals.invalidArgument(
        `the change set is full: it holds at most ${full}. Submit it, then propose the rest`,
      ),
    );
  }

  /** The entries that are about the row of a write. */
  private openRow(
    set: ChangeSet,
    write: ProposedWrite,
  ): Promise<readonly { readonly stored: StoredEntry; readonly change: HeldChange }[]> {
    if (write.operation === 'create') return Promise.resolve([]);
    const about = set.entries.filter(({ objectId }) => objectId !== null && objectId === write.objectId);
    return Promise.all(
      about.map(async (stored) => ({
        stored,
        change: await this.seal.open(set.id, stored),
      })),
    );
  }

  /** The entry that the same call made, in the open set or in one that was submitted since. @throws Refused for another write of this key */
  private async findMadeBefore(
    open: ChangeSet,
    key: WriteKey,
    call: ToolCall,
  ): Promise<readonly [ChangeSet, StoredEntry] | null> {
    const since = Date.now() - KEY_LIFETIME;
    // In the order in which a set goes through them: none is applied unseen.
    const waiting = await this.owned.list(call, LISTED_SETS, { states: ['submitted'] });
    const applied = await this.owned.list(call, LISTED_SETS, { states: ['applied'], since });
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
    const [shown = showBareEntry(stored)] = await this.showEntries({ ...set, entries: [stored] }, call);
    const { entry, class_name, object_id, before, after } = shown;
    return {
      proposed: true,
      change_set: set.id,
      entry,
      class_name,
      object_id,
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
    // Nothing is kept of it.
    if (set.entries.some(({ sealed }) => sealed === undefined)) return set.entries.map(showBareEntry);
    const governed = await this.open(call);
    if (set.state === 'applied') {
      const viewed = await governed.views.view(await this.seal.openAll(set));
      return set.entries.map((stored, at) => showApplied(stored, viewed[at]));
    }
    const reviewed = await governed.views.review(await this.seal.openAll(set));
    return set.entries.flatMap((stored, at) => {
      const one = reviewed[at];
      return one ? [showEntry(stored, one)] : [];
    });
  }

  async discard(id: string, call: ToolCall): Promise<ShownChangeSet> {
    const set = await this.owned.find(id, call);
    call.belongsTo(set.id);
    if (set.state === 'applied')
      throw new Refused(refusals.invalidArgument('the change set is applied: undo_changes takes it back'));
    return showSet(await this.owned.end(id, call, 'discarded'));
  }

  async refresh(id: string, call: ToolCall) {
    const governed = await this.open(call);
    await this.owned.update(id, call, async (set) => {
      call.belongsTo(set.id);
      if (set.kind !== 'proposed' || !isWaiting(set))
        throw new Refused(refusals.invalidArgument(`a change set that is ${set.state} cannot be refreshed`));
      const held = await this.seal.openAll(set);
      const put: StoredEntry[] = [];
      for (const [at, stored] of set.entries.entries()) {
        const change = held[at];
        const again = change && (await proposeAgain(governed, change));
        if (again) put.push({ ...stored, ...(await this.seal.seal(set.id, stored.entry, again)) });
      }
      return { put };
    });
    return this.show(id, call);
  }

  prepare(tool: string, args: unknown, call: ToolCall): Promise<string> {
    return this.submissions.prepare(tool, args, call);
  }

  async preview(id: string, call: ToolCall): Promise<SetPreview> {
    const set = await this.owned.find(id, call);
    const entries = await this.showEntries(set, call);
    const shown = { ...describeSet(set), ...fitEntries(entries) };
    return { id, digest: digestSet(set), shown, row: entries };
  }

  async showTo(id: string, approver: McpRequest): Promise<ViewedSet | null> {
    const found = await this.owned.atStore(() => this.sets.find(id));
    if (!found || found.owner.tenant !== approver.agent.tenantId) return null;
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

  async refuse(id: string, call: ToolCall): Promise<void> {
    await this.owned.end(id, call, 'refused');
  }

  async apply(call: ToolCall): Promise<AppliedSet> {
    const { changes: approved, by, id: approvalId } = call.approval ?? {};
    if (!approved) throw new Refused(refusals.approvalDenied('nobody has approved this change set'));
    const set = await this.owned.find(approved.id, call);
    call.belongsTo(set.id);
    if (set.state !== 'submitted' || digestSet(set) !== approved.digest)
      throw new Refused(
        refusals.approvalDenied(`the change set is ${set.state} and no longer the one that was approved`),
      );
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

interface WriteKey {
  readonly key: string;
  readonly digest: string;
}

const KEY = /^[A-Za-z0-9._:-]{1,128}$/;

function readKey(key: unknown, write: ProposedWrite): WriteKey {
  if (typeof key !== 'string' || !KEY.test(key))
    throw new Refused(
      refusals.invalidArgument('idempotency_key must be 1 to 128 letters, digits and the characters . _ : -'),
    );
  const digest = createHash('sha256').update(JSON.stringify(write)).digest('base64url');
  // Names of members of a document contain no dots.
  return { key: createHash('sha256').update(key).digest('base64url'), digest };
}

/** The entry that the same call made before. @throws Refused when the key belongs to another write */
function findKeyed({ entries }: ChangeSet, { key, digest }: WriteKey): StoredEntry | null {
  const found = entries.find(({ keys = {} }) => Object.hasOwn(keys, key));
  if (!found) return null;
  if (found.keys?.[key] === digest) return found;
  throw new Refused(
    refusals.invalidArgument(
      'idempotency_key was used for another call: a key stands for one write, so give a new one to this',
    ),
  );
}
