import { EventEmitter2 } from '@nestjs/event-emitter';
import fc from 'fast-check';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { Agent, MASTER_PRINCIPALS, McpRequest } from '#core';
import { type AuditRecord, AuditSink, OperationLog } from '#audit';
import { Authenticator, followVersions } from '#auth';
import { processState } from '#state';
import { CallJournal, ToolCallbacks } from '#dispatcher';
import { AgentScopes, compilePolicy, isRefusal, type SchemaSnapshot } from '#policy';
import { type ConfigVersion, ConfigVersions, loadConfig, Reloader } from '#config';

class Kept extends AuditSink {
  readonly records: AuditRecord[] = [];
  record(entry: AuditRecord): void {
    this.records.push(entry);
  }
}

/** Admits every caller as the only agent. */
class OneAgent extends Authenticator {
  constructor(private readonly version: ConfigVersion) {
    super();
  }

  authenticate(): Promise<Agent> {
    const definition = this.version.agents.get('reader');
    if (!definition) throw new Error('no such agent');
    return Promise.resolve(new Agent({ definition, principal: 'p' }));
  }
}

const POST = { className: 'Post', fields: new Map(), indexes: [], classLevelPermissions: null };
const schemas: SchemaSnapshot = {
  classNames: () => ['Post'],
  get: (name) => (name === 'Post' ? POST : undefined),
};

interface File {
  readonly hidden: boolean;
  readonly filtered: boolean;
  readonly concealed: boolean;
  readonly fault: 'none' | 'yaml' | 'key' | 'restart';
}

const policyOf = ({ hidden, concealed }: File) => ({
  classes: { Post: { hidden } },
  concealHidden: concealed,
});

function textOf(file: File): string {
  if (file.fault === 'yaml') return 'agents: [';
  return stringify({
    policy: policyOf(file),
    agents: { reader: { classes: file.filtered ? { except: ['Post'] } : { only: ['Post'] } } },
    ...(file.fault === 'key' && { polcy: {} }),
    ...(file.fault === 'restart' && { server: { port: 4000 } }),
  });
}

/** The result of a rule without versions, computed from this file alone. */
const verdictOf = (file: File) => (file.hidden ? 'hidden_class' : file.filtered ? 'class_filter' : 'allowed');

const file: fc.Arbitrary<File> = fc.record({
  hidden: fc.boolean(),
  filtered: fc.boolean(),
  concealed: fc.boolean(),
  fault: fc.constantFrom('none', 'none', 'yaml', 'key', 'restart'),
});
type Step =
  | { readonly do: 'write'; readonly file: File }
  | { readonly do: 'reload' }
  | { readonly do: 'admit' }
  | { readonly do: 'finish'; readonly which: number };
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('write' as const), file }),
  fc.record({ do: fc.constant('reload' as const) }),
  fc.record({ do: fc.constant('admit' as const) }),
  fc.record({ do: fc.constant('finish' as const), which: fc.nat(5) }),
);
const FIRST: File = { hidden: false, filtered: false, concealed: false, fault: 'none' };

describe('a version of the configuration', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'parley-versions-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('is that of a call from its admission to its record, whatever files come meanwhile', async () => {
    const path = join(folder, 'parley.yaml');
    const read = () => loadConfig({ PARLEY_CONFIG: path }, folder);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        writeFileSync(path, textOf(FIRST));
        const versions = new ConfigVersions(read(), processState().limiters);
        const refusals: string[] = [];
        const reloader = new Reloader({
          versions,
          reread: read,
          locate: (issues) => issues,
          admit: () => undefined,
          audit: { recordEvent: () => undefined },
          log: { log: () => undefined, warn: (line) => refusals.push(line) },
        });
        const current = followVersions(versions, (version) => new OneAgent(version));
        const scopes = new AgentScopes(versions.policies);
        const audit = new Kept();
        const journal = new CallJournal(
          versions.policies,
          audit,
          null,
          new OperationLog(10),
          new ToolCallbacks(),
          new EventEmitter2(),
        );
        let written = FIRST;
        let served = FIRST;
        let changes = 0;
        const calls: { readonly agent: Agent; readonly under: File }[] = [];
        versions.changes.subscribe(() => (changes += 1));

        const finish = ({ agent, under }: (typeof calls)[number]) => {
          const entered = scopes.of(schemas, agent, MASTER_PRINCIPALS).enter(agent, 'Post');
          expect(isRefusal(entered) ? entered.details?.kind : 'allowed').toBe(verdictOf(under));
          const recorded = journal.record({
            tool: 'query_class',
            args: {},
            context: new McpRequest(agent),
            outcome: isRefusal(entered)
              ? { ok: false, refusal: entered }
              : { ok: true, data: null, text: '', structured: false },
            milliseconds: 0,
            notes: {},
          });
          // This sink stores it synchronously.
          expect(recorded).toBeUndefined();
          expect(audit.records.at(-1)?.policy_version).toBe(compilePolicy(policyOf(under)).policy.version);
        };

        for (const one of steps) {
          if (one.do === 'write') writeFileSync(path, textOf((written = one.file)));
          else if (one.do === 'reload') {
            const before = changes;
            const outcome = await reloader.reload({ by: 'request', digest: null, isSame: () => true });
            const differs = textOf(written) !== textOf(served);
            const expected = written.fault !== 'none' ? 'refused' : differs ? 'adopted' : 'unchanged';
            expect(outcome).toBe(expected);
            expect(changes - before).toBe(outcome === 'adopted' ? 1 : 0);
            expect(versions.refused === null).toBe(outcome !== 'refused');
            if (outcome === 'adopted') served = written;
          } else if (one.do === 'admit') {
            const request = { headers: {}, remoteAddress: undefined, method: 'POST' };
            calls.push({ agent: await current().authenticate(request), under: served });
          } else {
            const call = calls[one.which % Math.max(calls.length, 1)];
            if (call) finish(call);
          }
        }
        for (const call of calls) finish(call);
      }),
      { numRuns: 60 },
    );
  });
});
