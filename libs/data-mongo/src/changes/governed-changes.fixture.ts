import { Agent, type AgentDefinitionOptions, compileAgentDefinition, type Identity, McpRequest } from '#core';
import {
  type AppliedChange,
  CachedPrincipalDirectory,
  GovernedChangesSource,
  GovernedRecordsSource,
  GovernedWritesSource,
  type HeldChange,
  type ParleyChanges,
  PrincipalResolver,
  type ProposedWrite,
  type WriteStore,
} from '#data';
import { AgentScopes, compilePolicy, Policies } from '#policy';
import { MongoPrincipalDirectory } from '../identity/mongo-principal-directory.js';
import type { TestDatabase } from '../test-database.contract.js';
import { MongoRowTransactions } from './mongo-row-transactions.js';

const BUDGET = { tool: 'test', timeout: 30 };

/**
 * Governed access to the changes of a store that contains the given seed.
 * @param writer of the writes that happen at once
 */
export async function openChanges(
  store: Awaited<ReturnType<TestDatabase['open']>>,
  policy: object = { unlistedClasses: 'allow' },
  writer: WriteStore = store.writer,
) {
  const directory = new CachedPrincipalDirectory(new MongoPrincipalDirectory(store.connection));
  const records = new GovernedRecordsSource(
    new AgentScopes(new Policies(compilePolicy(policy).policy)),
    store.reader,
    store.catalogue,
    new PrincipalResolver(directory),
  );
  const transactions = new MongoRowTransactions(store.connection, store.catalogue);
  const source = new GovernedChangesSource(records, store.writer, transactions);
  const writes = new GovernedWritesSource(records, writer, store.schemaWriter);
  return {
    source,
    writes,
    requestOf: requestAs,
    open: (options?: AgentDefinitionOptions, identity?: Identity) =>
      source.open(requestAs(options, identity), BUDGET),
    writesOf: (options?: AgentDefinitionOptions) => writes.rows(requestAs(options), BUDGET),
  };
}

function requestAs(options: AgentDefinitionOptions = {}, identity?: Identity): McpRequest {
  const definition = compileAgentDefinition('support', {
    permissions: 'admin',
    writes: 'proposed',
    ...options,
  });
  return new McpRequest(new Agent({ definition, principal: 'ada', ...(identity && { identity }) }));
}

/** A set in memory, one change for each row. */
export class HeldSet {
  readonly changes: HeldChange[] = [];

  /** Proposes a write, and holds what it leads to. */
  async propose(governed: ParleyChanges, write: ProposedWrite) {
    const find = (className: string, objectId: string) =>
      this.changes.find((held) => held.className === className && held.objectId === objectId) ?? null;
    const { change, judged } = await governed.propose(write, find);
    const at = this.changes.findIndex(
      (held) => held.className === judged.className && held.objectId === judged.objectId,
    );
    if (at >= 0) this.changes.splice(at, 1, ...(change ? [change] : []));
    else if (change) this.changes.push(change);
    return judged;
  }

  apply(governed: ParleyChanges): Promise<readonly AppliedChange[]> {
    return governed.apply(this.changes, () => Promise.resolve());
  }
}
