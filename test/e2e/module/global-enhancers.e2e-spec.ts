import 'reflect-metadata';
import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Injectable,
  Logger,
  Module,
  type NestInterceptor,
  type PipeTransform,
  Scope,
  UseGuards,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  type AnsweredMessage,
  type GlobalEnhancers,
  Parley,
  ParleyExecutionContext,
  ParleyModule,
  type ParleyModuleOptions,
  Tool,
} from '@parley/server';

const OPTIONS: ParleyModuleOptions = {
  agents: { desk: { permissions: 'readonly' } },
  auth: [{ apiKey: 'key-of-the-desk', agent: 'desk' }],
  policy: { unlistedClasses: 'allow', suppressMasterKeyWarning: true },
};

/** What ran, in order. */
const ran: string[] = [];

@Injectable()
class AppGuard implements CanActivate {
  canActivate(): boolean {
    ran.push('guards');
    return true;
  }
}
const handOver = (_: ExecutionContext, next: CallHandler) => {
  ran.push('interceptors');
  return next.handle();
};
@Injectable()
class AppInterceptor implements NestInterceptor {
  readonly intercept = handOver;
}
@Injectable()
class AppPipe implements PipeTransform {
  transform(value: unknown): unknown {
    ran.push('pipes');
    return value;
  }
}
@Catch(RangeError)
class AppFilter implements ExceptionFilter {
  catch(error: RangeError, _host: ArgumentsHost): never {
    ran.push('filters');
    throw error;
  }
}
@Injectable()
class OwnGuard implements CanActivate {
  canActivate(): boolean {
    ran.push('own guard');
    return true;
  }
}
/** As most guards of applications are written. */
@Injectable()
class HttpOnly implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToHttp().getRequest<{ headers: { session: string } }>().headers.session !== '';
  }
}

@Injectable()
class Desk {
  @Tool({ name: 'greet', description: 'Says hello.' })
  greet() {
    return { hello: 'there' };
  }

  @Tool({ name: 'fail', description: 'Fails.' })
  @UseGuards(OwnGuard)
  fail() {
    throw new RangeError('out of range');
  }
}

const EVERY_KIND = [
  { provide: APP_GUARD, useClass: AppGuard },
  { provide: APP_INTERCEPTOR, useClass: AppInterceptor },
  { provide: APP_PIPE, useClass: AppPipe },
  { provide: APP_FILTER, useClass: AppFilter },
];

interface Opened extends AsyncDisposable {
  call(name: string, args?: object): Promise<AnsweredMessage>;
  readonly warnings: readonly string[];
  readonly startLine: string;
}

async function open(
  given: unknown,
  providers: NonNullable<Parameters<typeof Module>[0]['providers']> = EVERY_KIND,
  tools = [Desk],
): Promise<Opened> {
  const globalEnhancers = given as GlobalEnhancers;
  @Module({
    imports: [ParleyModule.forRoot({ ...OPTIONS, ...(given !== undefined && { globalEnhancers }) })],
    providers: [...providers, ...tools],
  })
  class AppModule {}
  const warned = vi.spyOn(Logger.prototype, 'warn').mockReturnValue();
  const logged = vi.spyOn(Logger.prototype, 'log').mockReturnValue();
  const module = await Test.createTestingModule({ imports: [AppModule] }).compile();
  try {
    await module.init();
  } catch (error) {
    await module.close();
    throw error;
  }
  ran.length = 0;
  const parley = module.get(Parley);
  const agent = parley.agentFor({ agent: 'desk', principal: 'ada', identity: { user: 'ada' } });
  const texts = (spy: { mock: { calls: unknown[][] } }) => spy.mock.calls.map(([text]) => String(text));
  return {
    call: (name, args = {}) =>
      parley.handle(
        { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
        agent,
      ),
    warnings: texts(warned),
    startLine: texts(logged).find((text) => text.startsWith('Parley (')) ?? '',
    [Symbol.asyncDispose]: () => module.close(),
  };
}
afterEach(() => vi.restoreAllMocks());

const resultOf = ({ body }: AnsweredMessage) => body?.['result'] as { isError?: boolean; content: unknown };

describe('global enhancers of the application', () => {
  it('do not run on its tools, which their own always do', async () => {
    await using app = await open(undefined, [...EVERY_KIND, { provide: APP_GUARD, useClass: HttpOnly }]);
    expect(resultOf(await app.call('greet')).isError).toBe(false);
    expect(ran).toEqual([]);
    expect(resultOf(await app.call('fail')).isError).toBe(true);
    expect(ran).toEqual(['own guard']);
  });

  it('run on its tools by kind: exactly the kinds that the option names, whatever is named', async () => {
    const anyKinds = fc.record(
      {
        guards: fc.boolean(),
        interceptors: fc.boolean(),
        pipes: fc.boolean(),
        filters: fc.boolean(),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(anyKinds, async (kinds) => {
        await using app = await open(kinds);
        await app.call('fail');
        const { guards, interceptors, pipes, filters } = kinds;
        expect(ran).toEqual([
          ...(guards ? ['guards'] : []),
          'own guard',
          ...(interceptors ? ['interceptors'] : []),
          ...(pipes ? ['pipes'] : []),
          ...(filters ? ['filters'] : []),
        ]);
        ran.length = 0;
        await app.call('count_objects', { class_name: '_User' });
        expect(ran).toEqual([]);
      }),
      { numRuns: 12 },
    );
  });

  it('refuse a call where they run, as the guards of the tool do', async () => {
    await using app = await open({ guards: true }, [{ provide: APP_GUARD, useClass: HttpOnly }]);
    expect(resultOf(await app.call('greet')).isError).toBe(true);
  });

  it('can ask for the type of the context and for the caller', async () => {
    @Injectable()
    class ByPrincipal implements CanActivate {
      private readonly seen = new Map<string, number>();

      canActivate(context: ExecutionContext): boolean {
        const { principal } = ParleyExecutionContext.create(context).getAgent();
        const calls = (this.seen.get(principal) ?? 0) + 1;
        this.seen.set(principal, calls);
        return context.getType<string>() === 'mcp' && calls <= 2;
      }
    }
    await using app = await open({ guards: true }, [{ provide: APP_GUARD, useClass: ByPrincipal }]);
    const answers = [await app.call('greet'), await app.call('greet'), await app.call('greet')];
    expect(answers.map((answer) => resultOf(answer).isError)).toEqual([false, false, true]);
  });
});

describe('the start', () => {
  it('says which global enhancers there are and whether they run on tools', async () => {
    await using app = await open({ interceptors: true, guards: false, pipes: false, filters: false });
    expect(app.startLine).toMatch(
      /agent; global guards AppGuard do not run on tools; global interceptors AppInterceptor run on tools; global pipes AppPipe do not run on tools; global filters AppFilter do not run on tools$/,
    );
    expect(app.warnings).toEqual([]);
  });

  const warning = (kind: string, name: string): unknown =>
    expect.stringMatching(
      new RegExp(
        `^global ${kind} of the application do not run on its tools: ${name}\\..* Set globalEnhancers\\.${kind} to true`,
      ),
    );

  it('warns of global enhancers of each kind while nobody has decided whether they run', async () => {
    await using app = await open(undefined);
    expect(app.warnings).toEqual([
      warning('guards', 'AppGuard'),
      warning('interceptors', 'AppInterceptor'),
      warning('pipes', 'AppPipe'),
      warning('filters', 'AppFilter'),
    ]);
  });

  it('warns of no kind that is decided', async () => {
    await using app = await open({ guards: true, pipes: false, filters: false });
    expect(app.warnings).toEqual([warning('interceptors', 'AppInterceptor')]);
  });

  it('does not warn of them where the application has no tools', async () => {
    await using app = await open(undefined, EVERY_KIND, []);
    expect(app.warnings).toEqual([]);
  });

  it('ends where a guard that is made for each request is to run on tools', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class EachRequest extends AppGuard {}
    const providers = [{ provide: APP_GUARD, useClass: EachRequest }];
    await expect(open({ guards: true }, providers)).rejects.toThrow(
      /globalEnhancers\.guards: EachRequest cannot run on tools/,
    );
    await using app = await open(undefined, providers);
    expect(app.warnings).toEqual([expect.stringContaining('EachRequest')]);
  });

  it.each([
    [
      { guard: true },
      'globalEnhancers.guard: unknown option; there are: guards, interceptors, pipes, filters',
    ],
    [{ guards: 'yes' }, 'globalEnhancers.guards: expected true or false'],
    [true, 'globalEnhancers: expected an object'],
  ])('ends for %j, naming the option', async (given, expected) => {
    await expect(open(given)).rejects.toThrow(expected);
  });
});
