import { Inject, Injectable } from '@nestjs/common';
import { refuse } from '#core';
import {
  type ChangeSet,
  GovernedChangesSource,
  type HeldChange,
  type ParleyChanges,
  type StoredEntry,
} from '#data';
import type { ToolCall } from '#tools';
import { ChangeRecords } from './change-records.js';
import { ChangeSeal } from './change-seal.js';
import { CHANGE_SETTINGS, type ChangeSettings, isWaiting, OwnedSets } from './owned-sets.js';
import { SetApplication } from './set-application.js';
import { SetUndo } from './set-undo.js';
import { nameConflicts } from './shown-sets.js';

/** Characters of a title and of a reason. */
const MAX_TITLE = 200;
const MAX_REASON = 2_000;

/** Sets of one owner that may wait for their approval at once. */
const MAX_WAITING = 20;

/** Sets that are looked through for one that the same call submitted before. */
const MAX_RECENT = 50;

/** Takes sets out of the hands of their agents: from then on they wait for a person. */
@Injectable()
export class SetSubmissions {
  constructor(
    private readonly source: GovernedChangesSource,
    private readonly owned: OwnedSets,
    private readonly seal: ChangeSeal,
    private readonly records: ChangeRecords,
    private readonly undo: SetUndo,
    private readonly application: SetApplication,
    @Inject(CHANGE_SETTINGS) private readonly settings: Pick<ChangeSettings, 'undo'>,
  ) {}

  /** @returns the id of a set that is submitted. @throws Refused */
  async prepare(tool: string, args: unknown, call: ToolCall): Promise<string> {
    const given = (args ?? {}) as Readonly<Record<string, unknown>>;
    const governed = await this.source.open(call, { tool: call.tool.name, timeout: call.tool.timeout });
    const id =
      tool === 'undo_changes'
        ? await this.prepareUndo(given, governed, call)
        : await this.submit(given, governed, call);
    call.belongsTo(id);
    return id;
  }

  private async submit(
    given: Readonly<Record<string, unknown>>,
    governed: ParleyChanges,
    call: ToolCall,
  ): Promise<string> {
    const title = readText('title', given['title'], MAX_TITLE);
    const reason = readText('reason', given['reason'], MAX_REASON);
    const found = await this.findSubmitted(given['change_set'], { title, reason }, call);
    if (found.kind !== 'proposed')
      throw refuse.invalidArgument('this change set takes another one back: call undo_changes');
    if (found.state === 'submitted' && found.title === title && found.reason === reason) return found.id;
    if (!isWaiting(found)) throw refuse.invalidArgument(`this change set is ${found.state}`);
    if (found.entries.length === 0)
      throw refuse.invalidArgument('the change set is empty: propose a write first');
    this.application.assertPermitted(call.agent, found.entries);
    await assertPossible(governed, found.entries);
    const held = await this.seal.openAll(found);
    await assertReadable(held, governed, call);
    await assertAsProposed(held, governed);
    if (found.state === 'open') await this.assertRoom(call);
    const change = { state: 'submitted', title, reason, submittedAt: this.owned.now() } as const;
    if (!(await this.owned.change(found, change)))
      throw refuse.parseError('another call has changed the change set: read it and call again');
    this.records.record(found, 'submitted', call);
    return found.id;
  }

  /** The set that is named, else the one that the same call submitted before, else the open one. */
  private async findSubmitted(
    id: unknown,
    { title, reason }: Pick<ChangeSet, 'title' | 'reason'>,
    call: ToolCall,
  ): Promise<ChangeSet> {
    if (id !== undefined && id !== null) return this.owned.find(id, call);
    const waiting = await this.owned.list(call, MAX_RECENT, { states: ['submitted'] });
    const again = waiting.find(
      (set) => set.kind === 'proposed' && set.title === title && set.reason === reason,
    );
    const found = again ? await this.owned.find(again.id, call) : await this.owned.findOpen(call);
    if (found) return found;
    throw refuse.invalidArgument('you have no open change set: propose a write first');
  }

  private async assertRoom(call: ToolCall): Promise<void> {
    const waiting = await this.owned.list(call, MAX_RECENT, { states: ['submitted'] });
    if (waiting.length < MAX_WAITING) return;
    throw refuse.invalidArgument(
      `${MAX_WAITING} of your change sets wait for their approval already: discard_changes drops one`,
    );
  }

  private async prepareUndo(
    given: Readonly<Record<string, unknown>>,
    governed: ParleyChanges,
    call: ToolCall,
  ): Promise<string> {
    if (this.settings.undo !== 'agents')
      throw refuse.accessDenied('mutations', 'change sets are not taken back by agents here (changes.undo)');
    const original = await this.owned.find(given['change_set'], call);
    const waiting = await this.owned.list(call, MAX_RECENT, { states: ['submitted'] });
    const again = waiting.find(({ undoes = [] }) => undoes.includes(original.id));
    if (again) return again.id;
    const applied = await this.undo.openApplied([original]);
    await assertPossible(governed, applied);
    await assertReadable(applied, governed, call);
    const { changes, conflicts } = await governed.invert(applied);
    if (conflicts.length > 0 && (given['skip_conflicts'] !== true || changes.length === 0))
      throw refuse.changesInConflict(...nameConflicts(conflicts));
    this.application.assertPermitted(call.agent, changes);
    await this.assertRoom(call);
    return (await this.undo.create(call, { originals: [original], changes })).id;
  }
}

/** Nobody is asked about a set that could not be applied. @throws Refused */
async function assertAsProposed(changes: readonly HeldChange[], { views }: ParleyChanges): Promise<void> {
  const conflicts = (await views.review(changes)).flatMap(
    ({ judged: { className, objectId }, conflict: reason }) =>
      reason === null ? [] : [{ className, objectId, reason }],
  );
  if (conflicts.length > 0) throw refuse.changesInConflict(...nameConflicts(conflicts));
}

/** A sub-agent asks nobody about rows of the agents above it that are hidden from it. @throws Refused */
async function assertReadable(
  changes: readonly HeldChange[],
  { views }: ParleyChanges,
  { agent }: ToolCall,
): Promise<void> {
  if (agent.parent === null) return;
  if ((await views.view(changes)).every(({ isReadable }) => isReadable)) return;
  throw refuse.accessDenied(
    'mutations',
    'rows of this change set are hidden from this sub-agent: the agent at its root submits it and takes it back',
  );
}

/** @throws Refused with what is missing */
export async function assertPossible(
  governed: ParleyChanges,
  [first]: readonly Pick<StoredEntry, 'className'>[],
): Promise<void> {
  const obstacle = first ? await governed.findObstacle(first.className) : null;
  if (obstacle !== null) throw refuse.notImplemented(`a change set cannot be applied here: ${obstacle}`);
}

function readText(name: string, given: unknown, most: number): string {
  const text = typeof given === 'string' ? given.trim() : '';
  if (text === '') throw refuse.invalidArgument(`${name} is required`);
  if (text.length > most)
    throw refuse.invalidArgument(`${name} has ${text.length} characters; at most ${most} are permitted`);
  return text;
}
