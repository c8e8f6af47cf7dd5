import type { ApprovalService } from '#approvals';
import type { OperatorChanges, UndoTarget } from '#changes';
import { type Agent, Refused } from '#core';
import { OPERATIONS, type Request, withoutToday } from './asked-service.js';

type Params = Readonly<Record<string, unknown>>;

const SOME_DAY = Date.UTC(2100, 0, 1);

/** What people do with change sets: the agent as an approver, an operator of its rights, and another one who decides about its own. */
export class SetPeople {
  private readonly doings: Readonly<Record<string, (params: Params) => Promise<unknown>>>;

  constructor(
    private readonly approvals: ApprovalService,
    changes: OperatorChanges,
    private readonly who: { readonly agent: Agent; readonly operator: Agent; readonly chief: Agent },
  ) {
    const { operator } = who;
    this.doings = {
      [OPERATIONS.case]: ({ change_set }) => this.showCase(change_set),
      [OPERATIONS.list]: () => changes.list(operator, {}),
      [OPERATIONS.show]: ({ change_set }) => changes.show(operator, String(change_set)),
      [OPERATIONS.preview]: (params) => changes.previewUndo(operator, targetOf(params)),
      [OPERATIONS.undo]: async ({ skip_conflicts, ...params }) => {
        const target = targetOf(params);
        const preview = await changes.previewUndo(operator, target);
        const options = { digest: preview.digest, skip_conflicts: skip_conflicts === true };
        return { preview, undone: await changes.undo(operator, target, options) };
      },
    };
  }

  does({ method }: Request): boolean {
    return Object.hasOwn(this.doings, method);
  }

  async do({ method, params }: Request): Promise<string> {
    try {
      return withoutToday(JSON.stringify(await this.doings[method]?.(params)));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return JSON.stringify({ error: error.refusal.message, code: error.refusal.code });
    }
  }

  /** Approves what waits. */
  async approve(): Promise<void> {
    const { chief } = this.who;
    const listed = await this.approvals.list(chief);
    const [first] = listed.ok ? listed.value.approvals : [];
    const { signal } = new AbortController();
    const shown = first && (await this.approvals.show(first.id, chief, signal));
    if (!shown?.ok) throw new Error('nothing waits for a decision');
    const verdict = { approved: true, digest: shown.value.digest };
    const decided = await this.approvals.decide(shown.value.id, chief, verdict, signal);
    if (!decided.ok) throw new Error(`the decision is refused: ${decided.refusal}`);
  }

  private async showCase(set: unknown): Promise<unknown> {
    const { agent } = this.who;
    const listed = await this.approvals.list(agent);
    const cases = listed.ok ? listed.value.approvals : [];
    const found = cases.find(({ change_set }) => change_set === set);
    return found ? this.approvals.show(found.id, agent, new AbortController().signal) : listed;
  }
}

function targetOf({ change_set, agent }: Params): UndoTarget {
  if (typeof change_set === 'string') return { change_set };
  return { agent: String(agent), since: 0, until: SOME_DAY };
}
