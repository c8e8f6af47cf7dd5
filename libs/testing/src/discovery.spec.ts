import { Injectable, Module, type Provider, type Type, UseGuards } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  AgentFields,
  getParleyToken,
  type Parley,
  ParleyModule,
  ParseClass,
  Prompt,
  Resource,
  type ResourceCall,
  ResourceTemplate,
  Tool,
} from '@parley/server';
import { afterEach, describe, expect, it } from 'vitest';
import { createTestingApplication, createTestingOver } from './create-testing-application.js';
import { TestingDatabase } from './testing-database.js';

let made = 0;

@Injectable()
class Owing {
  @Tool({ name: 'owed', description: 'What is owed.' })
  owed() {
    return { by: this.constructor.name };
  }
}

class OwingMore extends Owing {}

@Injectable()
class Billing {
  readonly owed = 30;
}

@Injectable()
class Allowed {
  canActivate = () => true;
}

@Injectable()
@ParseClass('Invoice')
@AgentFields('number')
class BillingAgent {
  constructor(readonly billing: Billing) {
    made += 1;
  }

  @Tool({ name: 'open_total', description: 'What is owed.' })
  @UseGuards(Allowed)
  total() {
    return { total: this.billing.owed };
  }

  @Prompt({ name: 'dunning', description: 'A reminder.' })
  dunning() {
    return `You owe ${this.billing.owed}`;
  }

  @Resource({ uri: 'billing://open', name: 'open', description: 'What is owed' })
  open() {
    return { owed: this.billing.owed };
  }

  @ResourceTemplate({ uriTemplate: 'billing://invoices/{number}/lines/{line}', name: 'line' })
  async line({ number, line }: Record<string, string>, { records }: ResourceCall) {
    const rows = await records.find('Invoice', { where: { number } });
    return rows.length === 0 ? null : `${number}, line ${line}`;
  }
}
Reflect.defineMetadata('design:paramtypes', [Billing], BillingAgent);

/** Its tool beside its service, without `forFeature`. */
@Module({ providers: [Billing, BillingAgent], exports: [Billing] })
class BillingModule {}

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
  made = 0;
});

async function open(imports: unknown[], providers: Provider[] = []) {
  const database = await TestingDatabase.start({ objects: { Invoice: [{ number: 'A-1', total: 5 }] } });
  @Module({
    imports: imports.map((one) =>
      typeof one === 'function' && !('prototype' in one && Reflect.hasMetadata('providers', one))
        ? (one as (uri: string) => never)(database.uri)
        : one,
    ) as never[],
    providers,
  })
  class AppModule {}
  const module = await Test.createTestingModule({ imports: [AppModule] }).compile();
  opened.push(module, database);
  await module.init();
  return module;
}

const root =
  (options: object = {}) =>
  (uri: string) =>
    ParleyModule.forRoot({ database: { uri }, agents: { clerk: {} }, ...options });
const names = (parley: Parley) => parley.tools.all().map(({ definition }) => definition.name);

describe('A tool beside its service', () => {
  it('is served wherever a module provides it, made once, with prompts, resources and rules', async () => {
    const module = await open([root(), BillingModule]);
    const app = createTestingOver(module);
    const clerk = app.as('clerk');
    expect((await clerk.call('open_total')).data).toEqual({ total: 30 });
    expect(made).toBe(1);
    expect(JSON.stringify(await clerk.request('prompts/get', { name: 'dunning' }))).toContain('You owe 30');
    expect(JSON.stringify(await clerk.request('resources/list', {}))).toContain('billing://open');
    expect(await clerk.request('resources/read', { uri: 'billing://open' })).toMatchObject({
      contents: [{ uri: 'billing://open', mimeType: 'application/json', text: '{"owed":30}' }],
    });
    expect(JSON.stringify(await clerk.request('resources/templates/list', {}))).toContain('{number}');
    expect(
      await clerk.request('resources/read', { uri: 'billing://invoices/A-1/lines/a%2Fb' }),
    ).toMatchObject({ contents: [{ text: 'A-1, line a/b' }] });
    for (const uri of ['billing://invoices/A-2/lines/1', 'billing://invoices/A-1'])
      await expect(clerk.request('resources/read', { uri })).rejects.toThrow('Resource not found');
    await clerk.expectRefused('field_denied', 'fields', 'query_class', {
      class_name: 'Invoice',
      where: { total: 5 },
    });
  });

  it('is served as its module made it where forFeature names it too', async () => {
    const module = await open([root(), BillingModule, ParleyModule.forFeature([BillingAgent])]);
    expect(names(module.get(getParleyToken()))).toContain('open_total');
    expect(made).toBe(1);
  });

  it('is served by the instance that forFeature names, and by no other', async () => {
    const module = await open([
      root({ discovery: true }),
      root({ name: 'billing', server: { path: '/billing' } }),
      BillingModule,
      ParleyModule.forFeature([BillingAgent], { instance: 'billing' }),
    ]);
    expect(names(module.get(getParleyToken('billing')))).toContain('open_total');
    expect(names(module.get(getParleyToken()))).not.toContain('open_total');
  });

  it.each([
    ['by none of several', {}, {}, false, false],
    ['by the one that discovers', {}, { discovery: true }, false, true],
  ])('is served %s instances', async (_, first, second, byFirst, bySecond) => {
    const module = await open([
      root(first),
      root({ name: 'b', server: { path: '/b' }, ...second }),
      BillingModule,
    ]);
    expect(names(module.get(getParleyToken())).includes('open_total')).toBe(byFirst);
    expect(names(module.get(getParleyToken('b'))).includes('open_total')).toBe(bySecond);
  });

  it.each<[string, (type: Type) => Provider, string]>([
    ['a factory', (type) => ({ provide: type, useFactory: () => new Owing() }), 'Owing'],
    ['a value', (type) => ({ provide: type, useValue: new Owing() }), 'Owing'],
    ['another class', (type) => ({ provide: type, useClass: OwingMore }), 'OwingMore'],
  ])('is served as %s gives it, named by forFeature or not', async (_, provide, by) => {
    for (const more of [[], [ParleyModule.forFeature([Owing])]]) {
      const module = await open([root(), ...more], [provide(Owing)]);
      expect((await createTestingOver(module).as('clerk').call('owed')).data).toEqual({ by });
    }
  });

  it('is not served by an instance that is told not to', async () => {
    const module = await open([root({ discovery: false }), BillingModule]);
    expect(names(module.get(getParleyToken()))).not.toContain('open_total');
  });
});

describe('A declaration of a resource', () => {
  it.each([
    ['without a scheme', () => Resource({ uri: 'open', name: 'open' })],
    ['with a blank', () => Resource({ uri: 'a://b c', name: 'open' })],
    ['with a letter that no URI has', () => ResourceTemplate({ uriTemplate: 'a://b/{id}/ü', name: 'open' })],
    ['with an unknown option', () => Resource({ uri: 'a://b', name: 'open', mime: 'x' } as never)],
  ])('is refused %s', (_, declare) => {
    expect(declare).toThrow(/^@Resource/);
  });

  it('is refused twice', async () => {
    @Injectable()
    class Other {
      @Resource({ uri: 'a://b', name: 'one' })
      one() {
        return 'one';
      }

      @Resource({ uri: 'a://b', name: 'two' })
      two() {
        return 'two';
      }
    }
    await expect(createTestingApplication({ tools: [Other] })).rejects.toThrow("'a://b' is declared twice");
  });
});
