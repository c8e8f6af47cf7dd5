import { Body, Get, HttpCode, Inject, Param, Post, Query, UseInterceptors } from '@nestjs/common';
import { IsBoolean, IsIn, IsInt, IsOptional, MaxLength } from 'class-validator';
import {
  OperatorChanges,
  type OperatorSet,
  type UndoPreview,
  type UndoTarget,
  type ViewedEntry,
} from '#changes';
import { MOMENT_RULE, readMoment } from '#core';
import { Convert } from '#schema';
import { ClosedSignal, createValidationPipe, JsonBodyInterceptor, NotServed } from '#streaming';
import { CurrentOperator, OperatorController } from '../console.guards.js';
import { type Operator, OperatorNotes } from '../operator-gate.js';
import { readLimit } from './page-query.js';

const STATES = [
  'waiting',
  'open',
  'submitted',
  'applied',
  'undone',
  'denied',
  'discarded',
  'expired',
] as const;

const Name = (): PropertyDecorator => (target, name) => {
  IsOptional()(target, name);
  MaxLength(200, { message: ({ property }) => `${property}: a text of at most 200 characters` })(
    target,
    name as string,
  );
};

/** Query parameters of the list of change sets. */
export class ChangeSetsQuery {
  @Convert(readLimit)
  @IsInt()
  limit = readLimit(undefined);

  @Name() agent?: string;
  @Name() key?: string;
  @Name() class?: string;
  @Name() since?: string;
  @Name() until?: string;

  @IsOptional()
  @IsIn(STATES, { message: `state must be one of ${STATES.join(', ')}` })
  state?: (typeof STATES)[number];
}

/** The body of a request that takes change sets back. */
export class UndoBody {
  @Name() change_set?: string;
  @Name() agent?: string;
  @Name() key?: string;
  @Name() since?: string;
  @Name() until?: string;

  /** Of the preview. Absent: the preview is asked for. */
  @Name() digest?: string;

  @IsOptional()
  @IsBoolean({ message: 'skip_conflicts must be true or false' })
  skip_conflicts?: boolean;
}

/** The answer of `GET /console/api/changes`. */
export interface ChangeSetsAnswer {
  readonly change_sets: readonly OperatorSet[];
  /** Whose sets they are. Null: of callers without a tenant. */
  readonly tenant_id: string | number | null;
}

/** The answer of `GET /console/api/changes/ID`. */
export type ChangeSetAnswer = OperatorSet & { readonly entries: readonly ViewedEntry[] };

/** Change sets of the operator's tenant. What is shown and taken back is judged as for the operator's own agent. */
@OperatorController('console/api/changes')
export class ChangesController {
  constructor(
    @Inject(OperatorChanges) private readonly changes: OperatorChanges,
    @Inject(OperatorNotes) private readonly notes: OperatorNotes,
  ) {}

  @Get()
  async list(
    @Query(createValidationPipe(ChangeSetsQuery)) query: ChangeSetsQuery,
    @CurrentOperator() operator: Operator,
    @ClosedSignal() closed: AbortSignal,
  ): Promise<ChangeSetsAnswer> {
    const { agent, key, class: className, since, until, state, limit } = query;
    const asked = {
      limit,
      ...(agent !== undefined && { agent }),
      ...(key !== undefined && { keyName: key }),
      ...(className !== undefined && { className }),
      ...(state !== undefined && { state }),
      ...(since !== undefined && { since: readTime(since, 'since') }),
      ...(until !== undefined && { until: readTime(until, 'until') }),
    };
    const { agent: viewer } = operator;
    return { change_sets: await this.changes.list(viewer, asked, closed), tenant_id: viewer.tenantId };
  }

  @Get(':id')
  show(
    @Param('id') id: string,
    @CurrentOperator() { agent }: Operator,
    @ClosedSignal() closed: AbortSignal,
  ): Promise<ChangeSetAnswer> {
    return this.changes.show(agent, id, closed);
  }

  /** Without a digest what would be taken back; with that digest it is. */
  @Post('undo')
  @HttpCode(200)
  @UseInterceptors(JsonBodyInterceptor)
  async undo(
    @CurrentOperator() operator: Operator,
    @Body(createValidationPipe(UndoBody)) body: UndoBody,
    @ClosedSignal() closed: AbortSignal,
  ): Promise<UndoPreview | OperatorSet> {
    const target = readTarget(body);
    const { agent } = operator;
    const { digest, skip_conflicts = false } = body;
    if (digest === undefined) return this.changes.previewUndo(agent, target, closed);
    const undone = await this.notes.noteIfLost(operator, 'console.undo_changes', {
      target: 'change_set' in target ? target.change_set : target.agent,
      work: () => this.changes.undo(agent, target, { digest, skip_conflicts }, closed),
    });
    this.notes.write(operator, 'console.undo_changes', undone.change_set);
    return undone;
  }

  @Post(':id/discard')
  @HttpCode(200)
  @UseInterceptors(JsonBodyInterceptor)
  async discard(@Param('id') id: string, @CurrentOperator() operator: Operator): Promise<OperatorSet> {
    const discarded = await this.notes.noteIfLost(operator, 'console.discard_changes', {
      target: id,
      work: () => this.changes.discard(operator.agent, id),
    });
    this.notes.write(operator, 'console.discard_changes', id);
    return discarded;
  }
}

/** @throws NotServed */
function readTarget({ change_set, agent, key, since, until }: UndoBody): UndoTarget {
  const times = [agent, key, since, until];
  if (change_set !== undefined && times.every((given) => given === undefined)) return { change_set };
  if (change_set === undefined && agent !== undefined && since !== undefined)
    return {
      agent,
      ...(key !== undefined && { keyName: key }),
      since: readTime(since, 'since'),
      ...(until !== undefined && { until: readTime(until, 'until') }),
    };
  throw new NotServed(400, 'give change_set, or agent and since, and until for a time that is over');
}

/** @throws NotServed */
function readTime(text: string, name: string): number {
  const time = readMoment(text);
  if (time === null) throw new NotServed(400, `${name} must be ${MOMENT_RULE}`);
  return time;
}
