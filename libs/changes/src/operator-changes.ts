import { Inject, Injectable } from '@nestjs/common';
import { type Agent, McpRequest, orThrow, refuse } from '#core';
import {
  type ChangeConflict,
  type ChangeSet,
  ChangeSets,
  GovernedChangesSource,
  type HeldChange,
  type ParleyChanges,
  type StoredEntry,
} from '#data';
import { computeDigest, showChange } from '#dispatcher';
import { directWriteGate, Policies } from '#policy';
import type { RowCounts, ShownChangeSet } from '#tools';
import { ChangeSeal, digestSet, listKeyNames } from './change-seal.js';
import {
  CHANGE_SETTINGS,
  type ChangeSettings,
  isOfTenant,
  isWaiting,
  OwnedSets,
  tooContended,
} from './owned-sets.js';
import {
  assertQuery,
  assertTarget,
  type OperatorQuery,
  toStates,
  type UndoTarget,
} from './operator-queries.js';
import { SetApplication } from './set-application.js';
import { assertPossible } from './set-submissions.js';
import { findOrigins, listUndoable, SetUndo } from './set-undo.js';
import { countRows, nameRows, showSet, showViewed, type ViewedEntry } from './shown-sets.js';

/** A set as an operator sees it. */
export interface OperatorSet extends ShownChangeSet {
  /** Name of the agent whose set it is. */
  readonly agent: string;
  /** The caller whose set it is. */
  readonly principal: string;
  /** Names of the credentials by which its rows were written. */
  readonly key_names: readonly string[];
}

/** What would be taken back, and what would not. */
export interface UndoPreview {
  /** Of what is shown here: the undo has to carry it. */
  readonly digest: string;
  /** Ids of the sets that are taken back. */
  readonly change_sets: readonly string[];
  /** How many rows are created, changed and deleted by that. */
  readonly rows: RowCounts;
  /** Rows that cannot be taken back, with the reason. */
  readonly conflicts: readonly ViewedEntry[];
  /** Rows that are taken back: as they are now, and as they will be. */
  readonly entries: readonly ViewedEntry[];
  /**
   * Where one key is named: how many sets of the agent in this time, of at most 1,000, have a row of which it is not known by which
   * key it was written. Such rows are not taken back.
   */
  readonly unnamed_sets?: number;
}

/** Sets that one undo takes back. */
const MAX_SETS = 1_000;

/** Sets of a list where no other number is asked for. */
const LISTED_SETS = 50;

/** Sets whose rows are read at once. */
const SHOWN_AT_ONCE = 10;

/** Reading and writing for an operator. */
const BUDGET = { tool: 'changes', timeout: 60 };

/**
 * Change sets as people see and take them back: those of every agent of the operator's tenant, each row as the operator's own agent may
 * read it. What an operator takes back is judged as a write of this agent.
 */
@Injectable()
export class OperatorChanges {
  /** @internal Made by the module. */
  constructor(
    private readonly source: GovernedChangesSource,
    private readonly sets: ChangeSets,
    private readonly owned: OwnedSets,
    private readonly seal: ChangeSeal,
    private readonly undoing: SetUndo,
    private readonly application: SetApplication,
    private readonly policies: Policies,
    @Inject(CHANGE_SETTINGS) private readonly settings: Pick<ChangeSettings, 'undo' | 'maxEntries'>,
  ) {}

  /** The sets of the operator's tenant, newest first. */
  async list(
    operator: Agent,
    wanted: OperatorQuery = {},
    signal?: AbortSignal,
  ): Promise<readonly OperatorSet[]> {
    assertQuery(wanted);
    const { state, limit = LISTED_SETS, ...query } = wanted;
    const asked = { ...query, tenant: operator.tenantId, ...(state && toStates(state)) };
    const list = (most: number) => this.owned.listNow({ ...asked, limit: most });
    const first = await list(limit);
    const isSeen = (set: ChangeSet) => isOfTenant(set, operator);
    const { className } = query;
    // Where sets of other tenants are among the newest, the operator's own come after them.
    const listed = className === undefined && first.every(isSeen) ? first : await list(MAX_SETS);
    const seen = listed.filter(isSeen);
    const found =
      className === undefined ? seen : await this.pickShowing(className, seen, { operator, limit, signal });
    return found.slice(0, limit).map(showOwned);
  }

  /** Those that show the operator a row of a class: of a row that it may not read it learns no class. */
  private async pickShowing(
    className: string,
    sets: readonly ChangeSet[],
    { operator, limit, signal }: { operator: Agent; limit: number; signal: AbortSignal | undefined },
  ): Promise<readonly ChangeSet[]> {
    const found: ChangeSet[] = [];
    for (let at = 0; at < sets.length && found.length < limit; at += SHOWN_AT_ONCE) {
      const some = sets.slice(at, at + SHOWN_AT_ONCE);
      const shown = await Promise.all(some.map(({ id }) => this.show(operator, id, signal)));
      found.push(...some.filter((_, one) => shown[one]?.entries.some((row) => row.class_name === className)));
    }
    return found;
  }

  /** One set, row by row. @throws Refused for a set that there is not, or that is another tenant's */
  async show(
    operator: Agent,
    id: string,
    signal?: AbortSignal,
  ): Promise<OperatorSet & { readonly entries: readonly ViewedEntry[] }> {
    const set = await this.find(operator, id);
    const governed = await this.open(operator, signal);
    if (set.entries.some(({ sealed }) => sealed === undefined))
      return { ...showOwned(set), entries: await nameRows(set, governed.views) };
    const viewed = await governed.views.view(await this.seal.openAll(set));
    const entries = set.entries.flatMap((stored, at) => {
      const one = viewed[at];
      return one ? [{ ...showViewed(stored, one), ...showOrigin(stored) }] : [];
    });
    return { ...showOwned(set), entries };
  }

  /** Drops a set that is not applied. Nothing of it happens. @throws Refused also for an operator whose agent may not write so */
  async discard(operator: Agent, id: string): Promise<OperatorSet> {
    const set = await this.find(operator, id);
    if (set.state === 'applied')
      throw refuse.invalidArgument('the change set is applied: it can be taken back');
    if (!isWaiting(set)) return showOwned(set);
    this.application.assertPermitted(operator, set.entries);
    const ended = await this.owned.endNow(set, 'discarded', new McpRequest(operator));
    if (!ended) throw tooContended();
    return showOwned(ended);
  }

  /** What taking back would do now. It changes nothing. @throws Refused */
  async previewUndo(operator: Agent, target: UndoTarget, signal?: AbortSignal): Promise<UndoPreview> {
    const governed = await this.open(operator, signal);
    return (await this.prepare(operator, target, governed)).preview;
  }

  /**
   * Takes back what the preview of this digest showed, in one transaction.
   * @param options `skip_conflicts` leaves the rows out that the preview names as conflicts. Otherwise nothing is taken back when there is one
   * @throws Refused
   */
  async undo(
    operator: Agent,
    target: UndoTarget,
    options: { readonly digest: string; readonly skip_conflicts?: boolean },
    signal?: AbortSignal,
  ): Promise<OperatorSet> {
    const request = requestOf(operator, signal);
    const governed = await this.source.open(request, BUDGET);
    const { keyName, originals, changes, preview } = await this.prepare(operator, target, governed);
    const { conflicts } = preview;
    if (preview.digest !== options.digest)
      throw refuse.approvalDenied(
        'this digest is not of what would be taken back now: read the preview again',
      );
    if (changes.length === 0 || (conflicts.length > 0 && options.skip_conflicts !== true))
      throw refuse.changesInConflict(
        conflicts.slice(0, 20).map(({ class_name: name, object_id: id, conflict }) => {
          const row = name === undefined ? 'a row that you may not read' : `${name} ${id ?? ''}`;
          return `${row}: ${conflict ?? ''}`;
        }),
        Math.max(0, conflicts.length - 20),
      );
    await assertPossible(governed, changes);
    const set = await this.undoing.create(request, { originals, changes, keyName });
    try {
      await this.application.apply(set, governed, request, { approver: operator.principal });
    } catch (error) {
      // Where it is not known whether the set was applied, that is said, and not that it cannot be discarded.
      await this.owned.endNow(set, 'discarded', request).catch(() => undefined);
      throw error;
    }
    return showOwned(await this.find(operator, set.id));
  }

  private async prepare(operator: Agent, target: UndoTarget, governed: ParleyChanges) {
    if (this.settings.undo === 'nobody')
      throw refuse.accessDenied('mutations', 'nothing is taken back here (changes.undo)');
    assertTarget(target);
    const keyName = 'change_set' in target ? undefined : target.keyName;
    const { originals, unnamed } = await this.findTargets(operator, target);
    this.assertNotAlone(operator, originals);
    const { changes: inverse, conflicts: found } = await governed.invert(
      await this.undoing.openApplied(originals, keyName),
    );
    const listOrigins = findOrigins(originals.flatMap((set) => listUndoable(set, keyName)));
    const nameKeys = (row: Pick<HeldChange, 'className' | 'objectId'>) =>
      showOrigin({ keyNames: listOrigins(row) });
    if (inverse.length > this.settings.maxEntries)
      throw refuse.invalidArgument(
        `${inverse.length} rows would be taken back, and at most ${this.settings.maxEntries} can be at once (changes.maxEntries): choose a shorter time`,
      );
    this.application.assertPermitted(operator, inverse);
    orThrow(directWriteGate(operator, 'Undoing'));
    const reviewed = await governed.views.review(inverse);
    const viewed = await governed.views.view(inverse);
    const changes: HeldChange[] = [];
    const entries: ViewedEntry[] = [];
    const conflicts: ViewedEntry[] = [];
    for (const [at, change] of inverse.entries()) {
      const { judged, conflict = null } = reviewed[at] ?? {};
      const isReadable = viewed[at]?.isReadable ?? false;
      // Of what an operator may not read it takes nothing back: it could not know what it decides.
      if (!judged || !isReadable || conflict !== null) {
        const reason = conflict ?? 'you may not read this row';
        conflicts.push({ ...describeConflict(change, reason, isReadable), ...nameKeys(change) });
        continue;
      }
      changes.push(change);
      const { operation, className, objectId } = change;
      const { before, after } = showChange(operation, judged);
      const named = { operation, class_name: className, object_id: objectId };
      entries.push({ ...named, ...nameKeys(change), ...(before && { before }), ...(after && { after }) });
    }
    for (const conflict of found)
      conflicts.push({ ...(await this.judgeConflict(conflict, governed)), ...nameKeys(conflict) });
    const change_sets = originals.map(({ id }) => id);
    const rows = countRows(changes);
    const shown = { change_sets, rows, conflicts, entries };
    const ground = { viewer: operator.principal, sets: originals.map(digestSet), changes, keyName };
    const digest = computeDigest({ ...ground, shown });
    const preview = { digest, ...shown, ...(unnamed !== undefined && { unnamed_sets: unnamed }) };
    return { keyName, originals, changes, preview };
  }

  /** A row that somebody else has changed since, named only to who may read it. */
  private async judgeConflict(conflict: ChangeConflict, governed: ParleyChanges): Promise<ViewedEntry> {
    const { className, objectId } = conflict;
    const looked = { operation: 'delete', className, objectId, fields: null, before: null } as const;
    const [viewed] = await governed.views.view([looked]);
    return describeConflict(conflict, conflict.reason, viewed?.isReadable ?? false);
  }

  private async findTargets(
    operator: Agent,
    target: UndoTarget,
  ): Promise<{ readonly originals: readonly ChangeSet[]; readonly unnamed?: number }> {
    if ('change_set' in target) return { originals: [await this.find(operator, target.change_set)] };
    const query = { ...target, tenant: operator.tenantId, states: ['applied'], limit: MAX_SETS } as const;
    const { keyName } = target;
    const listed = await this.owned.atStore(() => this.sets.list(query));
    if (listed.length === MAX_SETS)
      throw refuse.invalidArgument(
        `${MAX_SETS} change sets or more were applied in this time: choose a shorter one`,
      );
    // What took others back is no mistake of the agent, and what was taken back is no more.
    const isMeant = (set: ChangeSet, name: string | null | undefined) =>
      set.kind !== 'undo' &&
      set.undoneBy === undefined &&
      isOfTenant(set, operator) &&
      listUndoable(set, name).length > 0;
    const wanted = listed.filter((set) => isMeant(set, keyName));
    const others =
      keyName === undefined
        ? undefined
        : await this.owned.atStore(() => this.sets.list({ ...query, keyName: null }));
    const unnamed = others?.filter((set) => isMeant(set, null)).length;
    if (wanted.length === 0)
      throw refuse.invalidArgument(
        keyName === undefined
          ? 'this agent wrote nothing in this time that can be taken back'
          : `this key of the agent wrote nothing in this time that can be taken back. Change sets of the agent with rows of which no key is known: ${unnamed}`,
      );
    return {
      originals: await Promise.all(wanted.map(({ id }) => this.find(operator, id))),
      ...(unnamed !== undefined && { unnamed }),
    };
  }

  /** Where writes need an approval, nobody takes back alone what it wrote itself. */
  private assertNotAlone(operator: Agent, originals: readonly ChangeSet[]): void {
    const { requireApprovalFor } = this.policies.of(operator).switches;
    const isOwn = originals.some(({ owner }) => owner.principal === operator.principal);
    if (isOwn && requireApprovalFor.length > 0)
      throw refuse.approvalDenied('what you wrote yourself is taken back by another operator');
  }

  private async find(operator: Agent, id: string): Promise<ChangeSet> {
    const found = typeof id === 'string' ? await this.owned.atStore(() => this.sets.find(id)) : null;
    if (found && isOfTenant(found, operator)) return this.owned.expire(found, new McpRequest(operator));
    throw refuse.invalidArgument('there is no such change set');
  }

  private open(operator: Agent, signal: AbortSignal | undefined): Promise<ParleyChanges> {
    return this.source.open(requestOf(operator, signal), BUDGET);
  }
}

const requestOf = (operator: Agent, signal: AbortSignal | undefined): McpRequest =>
  new McpRequest(operator, signal && { signal });

const showOwned = (set: ChangeSet): OperatorSet => ({
  ...showSet(set),
  agent: set.owner.agent,
  principal: set.owner.principal,
  key_names: listKeyNames(set),
});

/** What is known of a row beside its values: by which keys it was written, and the set that took it back alone. */
const showOrigin = ({
  keyNames = [],
  undoneBy,
}: Pick<StoredEntry, 'keyNames' | 'undoneBy'>): Pick<ViewedEntry, 'key_names' | 'undone_by'> => ({
  ...(keyNames.length > 0 && { key_names: keyNames }),
  ...(undoneBy !== undefined && { undone_by: undoneBy }),
});

const describeConflict = (
  { operation, className, objectId }: Pick<ChangeConflict, 'operation' | 'className' | 'objectId'>,
  conflict: string,
  isReadable: boolean,
): ViewedEntry => ({
  operation,
  ...(isReadable && { class_name: className, object_id: objectId }),
  // The reason may name the class, too.
  conflict: isReadable ? conflict : 'of a class or row that you may not read',
});
