import { type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import { Agent, type Identity, MASTER, sessionIdentity, McpRequest } from '#core';
import { type AuditRecord, AuditSink } from '#audit';
import { ApprovalService } from '#approvals';
import { OperatorChanges } from '#changes';
import { processState } from '#state';
import { Kernel, type KernelReply, SubAgents } from '#dispatcher';
import { readEnvironmentGates } from '#policy';
import { InstanceModule } from '#parley/instance';
import { ConfigVersions, loadConfig } from '#config';
import { makeFolder } from '../support/started.js';
import {
  type Answer,
  APPROVALS,
  OPERATIONS,
  type AskedService,
  GATES,
  type Request,
  settledAudit,
  withoutToday,
  type WorldDatabase,
} from './asked-service.js';
import { NamedSets, MINE, OTHERS } from './named-sets.js';
import { SetPeople } from './set-people.js';
import { store } from './plain-world.js';
import { CALLER, ROLE, TOKEN } from './vocabulary.js';
import type { AgentSpec, World } from './world.js';
import { configOf, filtersOf, TENANT_CLAIM } from './world-config.js';
import { openConnection } from './world-databases.js';

class KeptAudit extends AuditSink {
  readonly records: AuditRecord[] = [];
  record(entry: AuditRecord): void {
    this.records.push(entry);
  }
}

const IDENTITIES: Readonly<Record<AgentSpec['posture'], Identity>> = {
  master: MASTER,
  session: sessionIdentity(TOKEN),
  client: sessionIdentity(TOKEN),
  user: { kind: 'aclUser', userId: CALLER },
  role: { kind: 'aclRole', role: ROLE },
};

/** The service as it is composed for serving, over a database of its own, without HTTP in front of it. */
export async function openService(
  world: World,
  seed: unknown,
  database: WorldDatabase,
): Promise<AskedService> {
  const folder = makeFolder('properties');
  const connection = openConnection(world, database);
  let app: INestApplicationContext | undefined;
  const ending = new AbortController();
  const close = async () => {
    ending.abort();
    await app?.close();
    await connection.close();
  };
  try {
    writeFileSync(join(folder, 'parley.yaml'), configOf(world, database));
    const loaded = loadConfig({}, folder);
    await store(world, seed, database);
    const audit = new KeptAudit();
    const shared = processState();
    const service = InstanceModule.forRoot({
      loaded,
      connection,
      shared,
      gates: readEnvironmentGates(GATES),
      overrides: [{ provide: AuditSink, useValue: audit }],
    });
    app = await NestFactory.createApplicationContext(service, { logger: false });
    const kernel = app.get<Kernel>(Kernel);
    const versions = app.get<ConfigVersions>(ConfigVersions);
    const agent = await agentOf(world, versions.findDefinition('asked'), app.get<SubAgents>(SubAgents));
    const others = { proposer: versions.findDefinition('proposer'), chief: versions.findDefinition('chief') };
    const askerOf = ({ tenant, by }: Request) => {
      const definition = by && others[by];
      if (tenant !== undefined) return ofTenant(agent, tenant, world, definition);
      return definition ? new Agent({ definition, principal: definition.name }) : agent;
    };
    const approvals = app.get<ApprovalService>(ApprovalService);
    const named = new NamedSets();
    const operator = versions.findDefinition('operator');
    const people = new SetPeople(approvals, app.get<OperatorChanges>(OperatorChanges), {
      agent,
      operator: operator
        ? new Agent({ definition: operator, identity: agent.identity, principal: 'operator' })
        : agent,
      chief: askerOf({ method: '', params: {}, by: 'chief' }),
    });
    let waited: Promise<Answer> | null = null;
    const answer = async (request: Request): Promise<Answer> => {
      if (request.method === APPROVALS)
        return { reply: JSON.stringify(await approvals.list(askerOf(request))), audit: '' };
      if (request.method === OPERATIONS.approve) {
        const due = waited;
        waited = null;
        if (due) await people.approve();
        return due ?? NOTHING;
      }
      if (people.does(request)) return { reply: await people.do(request), audit: '' };
      const asked = ask(kernel, askerOf(request), audit, request, ending.signal);
      if (!request.waits) return asked;
      let isOver = false;
      void asked.finally(() => (isOver = true));
      await vi.waitUntil(async () => isOver || (await shared.approvals.countPending()) > 0, WAITS);
      if (isOver) return asked;
      waited = asked;
      return NOTHING;
    };
    return {
      ask: async (request) => {
        const { reply, audit: noted } = await answer({ ...request, params: named.resolve(request.params) });
        if (!world.proposed) return { reply, audit: noted };
        named.note(reply, request.by ? OTHERS : MINE);
        return { reply: named.hide(reply), audit: named.hide(noted) };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const NOTHING: Answer = { reply: '', audit: '' };
const WAITS = { timeout: 10_000, interval: 20 };

async function agentOf(
  { agent: spec, claimed }: World,
  definition: Agent['definition'] | undefined,
  subAgents: SubAgents,
): Promise<Agent> {
  if (!definition) throw new Error('the configuration names no agent');
  const agent = new Agent({
    definition,
    identity: IDENTITIES[spec.posture],
    principal: 'asked',
    ...(claimed && { claims: { [TENANT_CLAIM]: spec.tenantId } }),
  });
  if (!spec.child) return agent;
  const { tools, classes } = spec.child;
  return subAgents.create(agent, {
    filters: filtersOf(spec.child),
    ...(tools && { tools }),
    ...(classes && { classes }),
  });
}

/** @param proposer the agent that proposes it, of another person. Absent: the one that is asked */
const ofTenant = (
  { definition, identity, principal }: Agent,
  tenant: string,
  { claimed }: World,
  proposer?: Agent['definition'],
): Agent =>
  new Agent({
    definition: proposer ?? definition,
    identity,
    principal: proposer ? 'proposer' : principal,
    ...(claimed ? { claims: { [TENANT_CLAIM]: tenant } } : { tenantId: tenant }),
  });

async function ask(
  kernel: Kernel,
  agent: Agent,
  audit: KeptAudit,
  request: Request,
  signal: AbortSignal,
): Promise<Answer> {
  const before = audit.records.length;
  const transport = {
    version: '2025-11-25',
    signal,
    correlationId: 'same',
    requestId: 1,
  };
  const reply = await kernel.dispatch(request.method, request.params, new McpRequest(agent, transport));
  return {
    reply: withoutToday(textOf(reply)),
    audit: JSON.stringify(audit.records.slice(before).map(settledAudit)),
  };
}

function textOf(reply: KernelReply): string {
  return JSON.stringify('result' in reply ? reply.result : reply);
}
