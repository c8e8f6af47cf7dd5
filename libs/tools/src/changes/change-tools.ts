import { Injectable } from '@nestjs/common';
import { Flag, RequiredText, Text, WholeNumber } from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { BOOLEAN, INTEGER, listOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { READ_ONLY, type ToolCall } from '../tool.js';
import { Changes } from './changes.js';

const ROWS = objectOf({ created: INTEGER, changed: INTEGER, deleted: INTEGER }, [
  'created',
  'changed',
  'deleted',
]);

const SET = {
  change_set: STRING,
  kind: STRING,
  state: STRING,
  title: STRING,
  reason: STRING,
  opened_at: STRING,
  expires_at: STRING,
  applied_at: STRING,
  approver: STRING,
  undoes: listOf(STRING),
  undone_by: STRING,
  rows: ROWS,
};
const SET_MEMBERS = ['change_set', 'kind', 'state', 'opened_at', 'expires_at', 'rows'];

const ENTRIES = listOf(OBJECT);

const CATEGORY = 'changes';

const MAX_LISTED = 100;

class ListChangesArguments {
  @WholeNumber({ min: 1, max: MAX_LISTED }, 'Sets at most.') limit = 20;
}

@Injectable()
export class ListChangeSets {
  constructor(private readonly changes: Changes) {}

  @Tool({
    name: 'list_changes',
    title: 'List change sets',
    description:
      'Your change sets, newest first: open (takes your writes), submitted (waits for approval), applied, denied, discarded, expired.',
    category: CATEGORY,
    permission: 'write',
    clientSafe: true,
    approval: 'never',
    annotations: READ_ONLY,
    input: ListChangesArguments,
    output: objectOf({ change_sets: listOf(objectOf(SET, SET_MEMBERS)), truncated: BOOLEAN, hint: STRING }, [
      'change_sets',
    ]),
  })
  async list({ limit }: ListChangesArguments, call: ToolCall) {
    const sets = await this.changes.list(call, limit + 1);
    const raise = limit < MAX_LISTED ? `Raise limit (max ${MAX_LISTED}), or show` : 'Show';
    return {
      change_sets: sets.slice(0, limit),
      ...(sets.length > limit && {
        truncated: true,
        hint: `There are older ones. ${raise} one of them by its id with show_changes.`,
      }),
    };
  }
}

class ChangeSetArguments {
  @RequiredText('Id of a change set, as the answer to a proposed write gives it.') change_set!: string;
}

@Injectable()
export class ShowChangeSet {
  constructor(private readonly changes: Changes) {}

  @Tool({
    name: 'show_changes',
    title: 'Show a change set',
    description:
      'One of your change sets, row by row: what is stored now, what it becomes, and which rows somebody has changed since.',
    category: CATEGORY,
    permission: 'write',
    clientSafe: true,
    approval: 'never',
    timeout: 60,
    annotations: READ_ONLY,
    input: ChangeSetArguments,
    output: objectOf({ ...SET, entries: ENTRIES }, [...SET_MEMBERS, 'entries']),
  })
  show({ change_set: id }: ChangeSetArguments, call: ToolCall) {
    return this.changes.show(id, call);
  }
}

@Injectable()
export class DiscardChangeSet {
  constructor(private readonly changes: Changes) {}

  @Tool({
    name: 'discard_changes',
    title: 'Discard a change set',
    description: 'Drops one of your change sets that is not applied. Nothing of it happens.',
    category: CATEGORY,
    permission: 'write',
    clientSafe: true,
    approval: 'never',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    input: ChangeSetArguments,
    output: objectOf(SET, SET_MEMBERS),
  })
  discard({ change_set: id }: ChangeSetArguments, call: ToolCall) {
    return this.changes.discard(id, call);
  }
}

@Injectable()
export class RefreshChangeSet {
  constructor(private readonly changes: Changes) {}

  @Tool({
    name: 'refresh_changes',
    title: 'Refresh a change set',
    description:
      'Proposes every write of a change set again, for the rows as they are now. Use it after a conflict, then read what it would do.',
    category: CATEGORY,
    permission: 'write',
    clientSafe: true,
    approval: 'never',
    timeout: 60,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    input: ChangeSetArguments,
    output: objectOf({ ...SET, entries: ENTRIES }, [...SET_MEMBERS, 'entries']),
  })
  refresh({ change_set: id }: ChangeSetArguments, call: ToolCall) {
    return this.changes.refresh(id, call);
  }
}

const APPLIED_SET = objectOf({ change_set: STRING, applied: BOOLEAN, rows: ROWS, left_out: ENTRIES }, [
  'change_set',
  'applied',
  'rows',
]);

/** A person decides, and all of the set is applied or nothing. */
const APPROVED_TOOL = {
  category: CATEGORY,
  permission: 'write',
  clientSafe: true,
  approval: 'always',
  timeout: 60,
  task: 'optional',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
} as const;

class SubmitChangesArguments {
  @RequiredText('What the change is, in a few words.') title!: string;
  @RequiredText('Why it should happen.') reason!: string;
  @Text('Default: your open change set.') change_set?: string;
}

@Injectable()
export class SubmitChangeSet {
  constructor(private readonly changes: Changes) {}

  @Tool({
    name: 'submit_changes',
    title: 'Submit a change set',
    description:
      'Asks a person to approve a change set as a whole, and applies all of it or nothing. A row that somebody changed since you ' +
      'proposed it is named, and nothing is applied: call refresh_changes then.',
    ...APPROVED_TOOL,
    input: SubmitChangesArguments,
    output: APPLIED_SET,
  })
  submit(_args: SubmitChangesArguments, call: ToolCall) {
    return this.changes.apply(call);
  }
}

class UndoChangesArguments {
  @RequiredText('Id of an applied change set.') change_set!: string;
  @Flag(
    'true: leaves out rows that somebody has changed since. Otherwise nothing is undone when there is one.',
  )
  skip_conflicts?: boolean;
}

@Injectable()
export class UndoChangeSet {
  constructor(private readonly changes: Changes) {}

  @Tool({
    name: 'undo_changes',
    title: 'Undo a change set',
    description:
      'Takes one of your applied change sets back, after a person has approved it: created rows are deleted, deleted ones come back, ' +
      'changed ones get their former values.',
    ...APPROVED_TOOL,
    input: UndoChangesArguments,
    output: APPLIED_SET,
  })
  undo(_args: UndoChangesArguments, call: ToolCall) {
    return this.changes.apply(call);
  }
}
