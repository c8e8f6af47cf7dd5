import type { Agent, CallContext } from '#agent';
import type { AgentScope, AgentScopes } from '#policy';
import type { GovernedRecords } from '../governed-records.js';
import type { PrincipalResolver } from '../identity/principal-resolver.js';
import { DatabaseTurns } from '../metering/database-turns.js';
import type { Turn } from '../metering/metered.js';
import { MeteredReader } from '../metering/metered-reader.js';
import type { RecordReader } from '../record-store.js';
import type { SchemaCatalogue } from '../schema-catalogue.js';
import { DeferredRecords } from './deferred-records.js';
import { type CallBudget, operationContext } from './operation.js';
import { ParleyRecords } from './parley-records.js';
import type { RecordsParts } from './row-rules.js';
import { atStore } from './store-faults.js';

/** Requests outside a tool: completion, listings. */
const PROTOCOL_BUDGET: CallBudget = { tool: 'protocol', timeout: 15 };

/** Makes the governed door for a call; holds the only references to the store. */
export class GovernedRecordsSource {
  constructor(
    private readonly scopes: AgentScopes,
    private readonly reader: RecordReader,
    private readonly catalogue: SchemaCatalogue,
    private readonly identities: PrincipalResolver,
    private readonly turns: DatabaseTurns = new DatabaseTurns(),
  ) {}

  /** Nothing is read until the first use: a call that needs no data needs no database. */
  for(context: CallContext, budget: CallBudget = PROTOCOL_BUDGET): GovernedRecords {
    return new DeferredRecords(async () => new ParleyRecords(await this.open(context, budget)));
  }

  /** What an agent may reach, without a way to read any of it: for introspection. */
  async scopeOf(agent: Agent): Promise<AgentScope> {
    const context = { agent, signal: new AbortController().signal, progress: () => undefined };
    return (await this.open(context, PROTOCOL_BUDGET)).scope;
  }

  /** What every governed door of a call is made from. For the doors alone: it holds the ungoverned reader. */
  async open(context: CallContext, budget: CallBudget): Promise<RecordsParts> {
    const operation = operationContext(context, budget);
    // Who asks is settled before anything is read on their behalf.
    const principals = await atStore(operation, () => this.identities.resolveAgent(context.agent));
    const schemas = await atStore(operation, () => this.catalogue.snapshot());
    const scope = this.scopes.of(schemas, context.agent, principals);
    const { agent, trace, meter } = context;
    const turn: Turn = (work, signal) => this.turns.run(rootOf(agent).principal, work, signal);
    const metering = { meter, turn };
    const measured = (reader: RecordReader) => new MeteredReader(reader, metering);
    const call = { agent, scope, tool: budget.tool };
    return {
      agent,
      operation,
      reader: measured(this.reader.forCall(call)),
      operatorReader: measured(this.reader),
      scope,
      indexesOf: (schema) => this.catalogue.indexesOf(schema),
      call,
      trace,
      metering,
    };
  }
}

/** A sub-agent takes the turns of the agent at its root, whatever it is called. */
function rootOf(agent: Agent): Agent {
  return agent.parent ? rootOf(agent.parent) : agent;
}
