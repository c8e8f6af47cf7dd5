import { EventEmitter2 } from '@nestjs/event-emitter';
import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, McpRequest, refuse } from '#core';
import { type AuditRecord, AuditSink, OperationLog } from '#audit';
import type { GovernedRecords } from '#data';
import { compilePolicy, Policies } from '#policy';
import { processState } from '#state';
import { CallJournal, ToolCallbacks } from '../calls/call-journal.js';
import { DataBudgets } from '../calls/call-limits.js';
import { RunningCalls } from '../calls/interceptors.js';
import { ReadAccounts, RecordsSource } from './read-accounts.js';

class Records extends AuditSink {
  readonly kept: (readonly [gate: AuditRecord['gate'], begun: boolean | undefined])[] = [];
  record({ gate }: AuditRecord, begun?: boolean): void {
    this.kept.push([gate, begun]);
  }
}

class NoRows extends RecordsSource {
  for(): GovernedRecords {
    return new Proxy({} as GovernedRecords, { get: () => () => Promise.resolve([]) });
  }
}

function readOnce(rateLimit: number) {
  const audit = new Records();
  const policies = new Policies(compilePolicy({}).policy);
  const callbacks = new ToolCallbacks();
  const tools: unknown[] = [];
  const events = new EventEmitter2();
  events.on('parse.agent.tool_call', (record) => tools.push(record));
  const journal = new CallJournal(policies, audit, null, new OperationLog(10), callbacks, events);
  const budgets = new DataBudgets(processState(), policies);
  const accounts = new ReadAccounts(new NoRows(), audit, budgets, journal, new RunningCalls({}));
  const agent = new Agent({ definition: compileAgentDefinition('a', { rateLimit }), principal: 'p' });
  const context = new McpRequest(agent);
  const read = () =>
    accounts.run({ name: 'prompt:weekly', args: {}, context }, async (records) => {
      await records.find('Post', {});
      throw refuse.rateLimited(1, 60, 60);
    });
  return { read, kept: audit.kept, tools };
}

describe('the record of a prompt or a resource', () => {
  it('says that it ran where it was admitted to rows, whatever it ended with, and is no call of a tool', async () => {
    const { read, kept, tools } = readOnce(1);
    await expect(read()).rejects.toThrow('Rate limit');
    await expect(read()).rejects.toThrow('Rate limit');
    expect(kept).toEqual([
      ['rate_limit', true],
      ['rate_limit', false],
    ]);
    expect(tools).toEqual([]);
  });
});
