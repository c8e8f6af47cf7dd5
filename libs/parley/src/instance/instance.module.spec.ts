import { type DynamicModule, type INestApplicationContext, Injectable, Module } from '@nestjs/common';
import { ModulesContainer, NestFactory } from '@nestjs/core';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { afterEach, describe, expect, it } from 'vitest';
import { CurrentAgents } from '#core';
import { type AuditRecord, AuditSink } from '#audit';
import { Authenticator } from '#auth';
import { processState, SharedState } from '#state';
import { ConfigVersions, loadConfig } from '#config';
import { PrincipalResolver, ReadStore } from '#data';
import { MongoConnection } from '#data-mongo';
import { Approver, CallJournal, Kernel } from '#dispatcher';
import { Policies, readEnvironmentGates } from '#policy';
import { ExportStore, ToolRegistry, ToolRunner } from '#tools';
import { InstanceModule, OFFERED_PROVIDERS } from './instance.module.js';
import type { InstanceOptions } from './instance-options.js';

class NoAudit extends AuditSink {
  record(_entry: AuditRecord): void {}
}

@Injectable()
class ListsTools {
  constructor(
    readonly registry: ToolRegistry,
    readonly runner: ToolRunner,
  ) {}
}
@Module({ providers: [ListsTools] })
class ListingPlugin {}

@Injectable()
class ReadsRows {
  constructor(readonly store: ReadStore) {}
}
@Module({ providers: [ReadsRows] })
class CuriousPlugin {}

const opened: INestApplicationContext[] = [];
afterEach(async () => {
  for (const app of opened.splice(0)) await app.close();
});

async function open(options: Partial<InstanceOptions> = {}): Promise<INestApplicationContext> {
  const app = await NestFactory.createApplicationContext(moduleWith(options), {
    logger: false,
    abortOnError: false,
  });
  opened.push(app);
  return app;
}

/** No server listens at its database address: these tests read no rows. */
function moduleWith(options: Partial<InstanceOptions>): DynamicModule {
  return InstanceModule.forRoot({
    loaded: loadConfig({}, '/nowhere'),
    connection: new MongoConnection({ uri: 'mongodb://127.0.0.1:1', database: 'none', timeout: 100 }),
    shared: processState(),
    gates: readEnvironmentGates({}),
    ...options,
  });
}

describe('the modules of an instance', () => {
  it('have nothing in common with those of another instance', async () => {
    const [one, other] = [await open(), await open()];
    const shared = [ToolRegistry, SharedState, ConfigVersions, Policies, CallJournal, Kernel];
    for (const token of [...shared, Authenticator, Approver, ExportStore, PrincipalResolver])
      expect(one.get<object>(token as never)).not.toBe(other.get<object>(token as never));
  });

  it('share one provider of each token', async () => {
    const app = await open();
    expect(app.get(CurrentAgents)).toBe(app.get(ConfigVersions));
    expect(app.get(Policies)).toBe(app.get(ConfigVersions).policies);
    expect(app.get<ToolRegistry>(ToolRegistry).all().length).toBeGreaterThan(10);
  });

  it('take an override in the place of the provider of its token, for all who inject it', async () => {
    const audit = new NoAudit();
    const app = await open({ overrides: [{ provide: AuditSink, useValue: audit }] });
    expect(app.get(AuditSink)).toBe(audit);
    expect(Reflect.get(app.get(CallJournal), 'audit')).toBe(audit);
  });

  it('let plugins name nothing in their global modules besides the offered providers', async () => {
    const app = await open({ overrides: [{ provide: AuditSink, useClass: NoAudit }] });
    const named = [...app.get(ModulesContainer).values()].flatMap(({ isGlobal, name, exports }) =>
      isGlobal && name !== 'InternalCoreModule' && name !== EventEmitterModule.name ? [...exports] : [],
    );
    expect(new Set(named.filter((token) => typeof token !== 'symbol'))).toEqual(new Set(OFFERED_PROVIDERS));
  });

  it('take an override of a provider that the decorator of a module declares', async () => {
    const approver = { provide: Approver, useValue: { review: () => Promise.reject(new Error('unused')) } };
    const app = await open({ overrides: [approver] });
    expect(app.get<Approver>(Approver as never)).toBe(approver.useValue);
  });

  it('refuse an override that would replace nothing', () => {
    expect(() => moduleWith({ overrides: [{ provide: 'no such token', useValue: 1 }] })).toThrow(
      'no module takes no such token from the instance',
    );
  });

  it('offer plugins the registries and the runner, and none of the ports to rows', async () => {
    const app = await open({ plugins: [ListingPlugin] });
    const plugin = app.get(ListsTools);
    expect(plugin.registry).toBe(app.get(ToolRegistry));
    expect(plugin.runner).toBe(app.get(ToolRunner));
    await expect(open({ plugins: [CuriousPlugin] })).rejects.toThrow(
      /can't resolve dependencies of the ReadsRows/,
    );
  });
});
