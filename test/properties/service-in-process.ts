import { type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, type Identity, MASTER, sessionIdentity, McpRequest } from '#core';
import { type AuditRecord, AuditSink } from '#audit';
import { processState } from '#state';
import { MongoConnection } from '#data-mongo';
import { Kernel, type KernelReply, SubAgents } from '#dispatcher';
import { readEnvironmentGates } from '#policy';
import { InstanceModule } from '#parley/instance';
import { loadConfig } from '#config';
import {
  type Answer,
  type AskedService,
  GATES,
  type Request,
  settledAudit,
  withoutToday,
  type WorldDatabase,
} from './asked-service.js';
import { store } from './plain-world.js';
import { CALLER, ROLE, TOKEN } from './vocabulary.js';
import type { AgentSpec, World } from './world.js';
import { configOf, filtersOf } from './world-config.js';

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
  const folder = mkdtempSync(join(tmpdir(), 'parley-properties-'));
  const { uri, name, fastReads = false } = database;
  const connection = new MongoConnection({ uri, database: name, timeout: 60_000, fastReads });
  let app: INestApplicationContext | undefined;
  const close = async () => {
    await app?.close();
    await connection.close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    writeFileSync(join(folder, 'parley.yaml'), configOf(world, database.embeddings));
    const loaded = loadConfig({}, folder);
    await store(world, seed, database, connection);
    const audit = new KeptAudit();
    const service = InstanceModule.forRoot({
      loaded,
      connection,
      shared: processState(),
      gates: readEnvironmentGates(GATES),
      overrides: [{ provide: AuditSink, useValue: audit }],
    });
    app = await NestFactory.createApplicationContext(service, { logger: false });
    const kernel = app.get<Kernel>(Kernel);
    const agent = await agentOf(world.agent, loaded.agents.get('asked'), app.get<SubAgents>(SubAgents));
    const askerOf = ({ tenant }: Request) => (tenant === undefined ? agent : ofTenant(agent, tenant));
    return { ask: (request) => ask(kernel, askerOf(request), audit, request), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function agentOf(
  spec: AgentSpec,
  definition: Agent['definition'] | undefined,
  subAgents: SubAgents,
): Promise<Agent> {
  if (!definition) throw new Error('the configuration names no agent');
  const agent = new Agent({ definition, identity: IDENTITIES[spec.posture], principal: 'asked' });
  if (!spec.child) return agent;
  const { tools, classes } = spec.child;
  return subAgents.create(agent, {
    filters: filtersOf(spec.child),
    ...(tools && { tools }),
    ...(classes && { classes }),
  });
}

const ofTenant = ({ definition, identity, principal }: Agent, tenantId: string): Agent =>
  new Agent({ definition, identity, principal, tenantId });

async function ask(kernel: Kernel, agent: Agent, audit: KeptAudit, request: Request): Promise<Answer> {
  const before = audit.records.length;
  const transport = {
    version: '2025-11-25',
    signal: new AbortController().signal,
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
