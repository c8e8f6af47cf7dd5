import { Inject, Injectable } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AuditRecord } from '#audit';
import { loadConfig } from '#config';
import { startHttpService } from '../../src/http-service.js';
import { rpc } from '../support/service.js';
import { makeFolder } from '../support/started.js';
import { type AskedService, GATES, settledAudit, withoutToday, type WorldDatabase } from './asked-service.js';
import { store } from './plain-world.js';
import { TOKEN } from './vocabulary.js';
import type { World } from './world.js';
import { AGENT_KEY, configOf } from './world-config.js';
import { openConnection } from './world-databases.js';

/** Hears every audit record as an application would; the services of a test start one after the other. */
@Injectable()
class Hearing {
  static latest: Hearing;
  readonly records: AuditRecord[] = [];

  constructor(@Inject(EventEmitter2) events: EventEmitter2) {
    Hearing.latest = this;
    events.on('parley.audit', (record: AuditRecord) => this.records.push(record));
  }
}

/** The service as `npm start` serves it, on a free port; agents of requests have no sub-agents here. */
export async function openHttpService(
  world: World,
  seed: unknown,
  database: WorldDatabase,
): Promise<AskedService> {
  const folder = makeFolder('properties');
  const connection = openConnection(world, database);
  const dispose = () => connection.close();
  try {
    writeFileSync(join(folder, 'parley.yaml'), configOf(world, database));
    await store(world, seed, database);
    const service = await startHttpService(loadConfig({}, folder), connection, GATES, [Hearing]);
    const heard = Hearing.latest;
    const { posture } = world.agent;
    const session = posture === 'session' || posture === 'client';
    const headers = { 'X-MCP-API-Key': AGENT_KEY, ...(session && { 'X-Parse-Session-Token': TOKEN }) };
    return {
      ask: async ({ method, params }) => {
        const before = heard.records.length;
        const { body } = await rpc(service, method, params, headers);
        const { result, error } = body as { result?: unknown; error?: unknown };
        const reply = withoutToday(JSON.stringify(result ?? { error }));
        return { reply, audit: JSON.stringify(heard.records.slice(before).map(settledAudit)) };
      },
      close: async () => {
        await service.close();
        await dispose();
      },
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}
