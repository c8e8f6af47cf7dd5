import { createHash } from 'node:crypto';
import { type RequestContext, Refused } from '#core';
import { type AgentScope, allOf, isRefusal, type Where } from '#policy';
import { type RowView, RowViews, type WatchedOperation } from '../change-feed.js';
import type { CallBudget, GovernedRecordsSource } from './governed-sources.js';
import { type GovernedCall, RowRules } from './row-rules.js';
import { atStore } from './store-refusals.js';

const WATCHING: CallBudget = { tool: 'subscription', timeout: 15 };

/** The governed access of subscriptions: the same gates and the same predicate as a read of the class. */
export class GovernedViews extends RowViews {
  constructor(private readonly records: GovernedRecordsSource) {
    super();
  }

  async open(context: RequestContext, className: string, operation: WatchedOperation): Promise<RowView> {
    const call = await this.records.open(context, WATCHING);
    const entered = call.scope.enter(call.agent, className, operation);
    if (isRefusal(entered)) throw new Refused(entered);
    const { declared, where, asked } = await new RowRules(call).predicate(entered.className, {
      canonical: true,
      operation,
    });
    return {
      className: entered.className,
      schema: entered.schema,
      key: digest(`${operation} ${JSON.stringify(where)}`),
      everything: Object.keys(where).length === 0,
      declared: asked ? null : declared,
      ownersOnly: isOwnersOnly(call.scope, entered.className, operation),
      ...questions(call, entered.className, where),
    };
  }
}

function questions(
  { reader, operation }: GovernedCall,
  className: string,
  where: Where,
): Pick<RowView, 'holdsAny' | 'size'> {
  return {
    holdsAny: async (objectIds) => {
      if (objectIds.length === 0) return false;
      const mine = allOf({ objectId: { $in: objectIds } }, where);
      const query = { className, where: mine, keys: ['objectId'], limit: 1 };
      return (await atStore(operation, () => reader.find(query, operation))).length > 0;
    },
    size: () => atStore(operation, () => reader.count({ className, where }, operation)),
  };
}

function isOwnersOnly({ rights }: AgentScope, className: string, operation: WatchedOperation): boolean {
  if (rights.unlimited) return false;
  const verdict = rights.verdict(className, operation);
  return className === '_Session' || (verdict.outcome === 'allowed' && verdict.via === 'pointer');
}

/** A digest, because predicates can be long and each subscription has one. */
function digest(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('base64');
}
