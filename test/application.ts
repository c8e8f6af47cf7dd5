import type { Provider, Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { loadConfig } from '#config';
import { openDatabase } from '#composition';
import { startHttpService } from '../src/http-service.js';
import { NEWSROOM, NEWSROOM_POLICY } from './seeds.js';

export interface ApplicationOptions {
  /** Each is called with a key of its own. */
  readonly agents: Readonly<Record<string, object>>;
  readonly providers: readonly Provider[];
  readonly config?: Readonly<Record<string, unknown>>;
}

/** The service over the newsroom, in this process, with an application's providers in it. */
export interface Application {
  readonly url: string;
  headers(agent: string): Record<string, string>;
  get<T>(token: Type<T> | (abstract new (...args: never[]) => T)): T;
  stop(): Promise<void>;
}

export async function startApplication({
  agents,
  providers,
  config = {},
}: ApplicationOptions): Promise<Application> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-application-'));
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(NEWSROOM));
  writeFileSync(
    join(folder, 'parley.yaml'),
    stringify({
      server: { port: 0 },
      database: { uri: 'embedded', seed: './seed.json' },
      agents,
      auth: Object.keys(agents).map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: NEWSROOM_POLICY,
      ...config,
    }),
  );
  const loaded = loadConfig({}, folder);
  const database = await openDatabase(loaded.config.database);
  let found: ModuleRef | undefined;
  const probe = { provide: 'probe', useFactory: (ref: ModuleRef) => (found = ref), inject: [ModuleRef] };
  const service = await startHttpService(loaded, database.connection, {}, [...providers, probe]);
  return {
    url: service.url,
    headers: (agent) => ({ 'X-MCP-API-Key': `key-of-${agent}` }),
    get: (token) => {
      if (!found) throw new Error('the application has not started');
      return found.get(token as Type, { strict: false }) as never;
    },
    stop: async () => {
      await service.close();
      await database.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
