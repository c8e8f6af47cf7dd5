import { EventEmitter2 } from '@nestjs/event-emitter';
import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, refusals, McpRequest } from '#core';
import { type AuditRecord, AuditSink, OperationLog } from '#audit';
import { compilePolicy, Policies, type PolicyConfig } from '#policy';
import { CallJournal, ToolCallbacks } from './call-journal.js';
import type { CallNotes } from './tool-call.js';

class Records extends AuditSink {
  readonly entries: AuditRecord[] = [];
  readonly begun: (boolean | undefined)[] = [];
  record(entry: AuditRecord, begun?: boolean): void {
    this.entries.push(entry);
    this.begun.push(begun);
  }
}

function record(config: PolicyConfig, notes: CallNotes, ok = true): AuditRecord | undefined {
  return keep(config, notes, ok).entries[0];
}

function keep(config: PolicyConfig, notes: CallNotes, ok: boolean): Records {
  const audit = new Records();
  const { policy } = compilePolicy(config);
  const journal = new CallJournal(
    new Policies(policy),
    audit,
    null,
    new OperationLog(10),
    new ToolCallbacks(),
    new EventEmitter2(),
  );
  const agent = new Agent({ definition: compileAgentDefinition('a', {}), principal: 'p' });
  void journal.record({
    tool: 'semantic_search',
    args: { query: 'tea', filter: { topic: 'secret' }, vector_filter: {} },
    context: new McpRequest(agent),
    outcome: ok
      ? { ok: true, data: {}, text: '{}', structured: true }
      : { ok: false, refusal: refusals.embeddingFailed('x') },
    milliseconds: 1,
    notes,
  });
  return audit;
}

describe('the record of a call that is refused', () => {
  it.each<[CallNotes, boolean]>([
    [{}, false],
    [{ begun: true }, true],
  ])('goes to the audit with what its handler did: %j, begun %j', (notes, begun) => {
    expect(keep({}, notes, false).begun).toEqual([begun]);
  });
});

describe('the record of a call that embedded', () => {
  it('has requests, tokens and, when a price is set, their cost', () => {
    const embedding = { calls: 2, tokens: 150 };
    expect(record({ embedCostPerMillionTokens: 0.02 }, { embedding })).toMatchObject({
      embed_calls: 2,
      embed_tokens: 150,
      embed_cost_usd: 0.000003,
    });
    const free = record({}, { embedding });
    expect(free).toMatchObject({ embed_calls: 2, embed_tokens: 150 });
    expect(free).not.toHaveProperty('embed_cost_usd');
    expect(record({}, { embedding }, false)).toMatchObject({ success: false, embed_calls: 2 });
  });

  it('says nothing of embeddings that were not made', () => {
    for (const notes of [{}, { embedding: { calls: 0, tokens: 0 } }])
      expect(Object.keys(record({ embedCostPerMillionTokens: 1 }, notes) ?? {}).join()).not.toContain(
        'embed',
      );
  });

  it('names no filter', () => {
    expect(record({}, {})?.args_keys).toEqual(['query']);
  });
});
