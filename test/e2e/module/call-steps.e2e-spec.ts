import 'reflect-metadata';
import {
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  ForbiddenException,
  Get,
  Inject,
  Injectable,
  Logger,
  Module,
  type NestInterceptor,
  Scope,
  SetMetadata,
  UseGuards,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { catchError, map, type Observable, of, tap, timeout } from 'rxjs';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type AuditRecord,
  AuditSink,
  ConfigError,
  ParleyExecutionContext,
  ParleyGuard,
  ParleyModule,
  type ParleyModuleOptions,
  RequirePermission,
  Tool,
  type ToolCall,
} from '@parley/server';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, startDatabase } from '../../support/service.js';

const posts = await startDatabase(POSTS_SEED);

/** A service of the application, which its steps inject. */
@Injectable()
class Office {
  isOpen = true;
  isBroken = false;
  readonly heard: string[] = [];
}
@Module({ providers: [Office], exports: [Office] })
class OfficeModule {}

const AtNight = () => SetMetadata('at-night', true);

/** One rule for every tool, and an exception that a tool declares. */
@Injectable()
class OfficeHours implements CanActivate {
  constructor(
    @Inject(Office) private readonly office: Office,
    @Inject(Reflector) private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    await Promise.resolve();
    this.office.heard.push(`asked by ${ParleyExecutionContext.create(context).getAgent().principal}`);
    if (this.office.isBroken) throw new Error('mongodb://root:secret@10.0.0.1 is down');
    return this.office.isOpen || this.reflector.get<boolean>('at-night', context.getHandler()) === true;
  }
}

@Injectable()
class NoFridays implements CanActivate {
  static isFriday = false;

  canActivate(): boolean {
    if (NoFridays.isFriday) throw new ForbiddenException('not on Fridays');
    return true;
  }
}

/** Writes down what it saw, and tries to answer in the place of the gates. */
@Injectable()
class Watch implements NestInterceptor {
  constructor(@Inject(Office) private readonly office: Office) {}

  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(
      tap({ error: (error: Error) => this.office.heard.push(`saw ${error.name}`) }),
      catchError(() => of({ ok: true, data: 'forged', text: 'forged', structured: false })),
      map(() => 'forged'),
    );
  }
}

/** Answers without the rest of the list. */
@Injectable()
class Impatient implements NestInterceptor {
  intercept(): Observable<unknown> {
    return of('forged');
  }
}

@Injectable()
class Stamp implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((result: object) => ({ ...result, stamped: 'by the office' })));
  }
}

/** Nest's own example of an interceptor that ends what takes long. */
@Injectable()
class Hurried implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(timeout(500));
  }
}

let stopped: unknown;

@Injectable()
class DeskTools {
  @Tool({ name: 'wait', description: 'Waits until it is stopped.' })
  wait(_args: object, { signal }: ToolCall) {
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve((stopped = signal.reason)));
    });
  }

  @Tool({ name: 'greet', description: 'Says hello.' })
  greet() {
    return { hello: 'there' };
  }

  @Tool({ name: 'ring', description: 'Rings the night bell.' })
  @AtNight()
  ring() {
    return { rang: true };
  }
}

@Controller('bell')
@UseGuards(ParleyGuard)
@RequirePermission('readonly')
class Bell {
  @Get()
  ring() {
    return 'rang';
  }
}

class Records extends AuditSink {
  readonly kept: AuditRecord[] = [];
  record(record: AuditRecord): void {
    this.kept.push(record);
  }
}

const OPTIONS: ParleyModuleOptions = {
  database: { uri: posts.uri, name: 'parley' },
  policy: POSTS_POLICY,
  agents: { desk: { permissions: 'readonly', tenantId: 'acme', rateLimit: 1_000_000 } },
  auth: [{ apiKey: 'key-of-the-desk', agent: 'desk' }],
};
type Steps = Pick<Parameters<typeof ParleyModule.forRoot>[0], 'guards' | 'interceptors'>;

const records = new Records();

async function start(steps: Steps) {
  const module = await Test.createTestingModule({
    imports: [
      OfficeModule,
      ParleyModule.forRoot({
        ...OPTIONS,
        ...steps,
        imports: [OfficeModule],
        providers: [{ provide: AuditSink, useValue: records }],
      }),
    ],
    controllers: [Bell],
    providers: [DeskTools],
  }).compile();
  const app = module.createNestApplication<NestExpressApplication>(new ExpressAdapter(), { logger: false });
  await app.listen(0, '127.0.0.1');
  const url = `${await app.getUrl()}/mcp`;
  const call = (name: string, args: object = {}) =>
    callTool({ url }, name, args, { 'x-mcp-api-key': 'key-of-the-desk' });
  const ring = () => fetch(url.replace(/mcp$/, 'bell'), { headers: { 'x-mcp-api-key': 'key-of-the-desk' } });
  return { app, call, ring, office: app.get(Office, { strict: false }) };
}

const POSTS = { class_name: 'Post', limit: 1 };

describe('guards and interceptors of an application, for all tools', () => {
  let started: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    started = await start({ guards: [OfficeHours], interceptors: { before: [Watch], after: [Stamp] } });
  });
  afterAll(() => started.app.close());
  beforeEach(() => {
    records.kept.length = 0;
    Object.assign(started.office, { isOpen: true, isBroken: false });
    started.office.heard.length = 0;
  });

  it('run on the built-in tools and on its own, with what their constructors inject', async () => {
    expect(JSON.parse((await started.call('query_class', POSTS)).text)).toMatchObject({
      class_name: 'Post',
      result_count: 1,
      stamped: 'by the office',
    });
    expect(JSON.parse((await started.call('greet')).text)).toEqual({
      hello: 'there',
      stamped: 'by the office',
    });
    expect(started.office.heard).toEqual([
      expect.stringMatching(/^asked by /),
      expect.stringMatching(/^asked by /),
    ]);
  });

  it('refuse by answering false, and the refusal is in the audit record', async () => {
    started.office.isOpen = false;
    expect(await started.call('query_class', POSTS)).toMatchObject({ isError: true, code: 'access_denied' });
    expect(records.kept).toEqual([
      expect.objectContaining({
        tool: 'query_class',
        success: false,
        error_code: 'access_denied',
        gate: 'application',
      }),
    ]);
    expect(started.office.heard).toContain('saw Refused');
  });

  it('read what a tool declares', async () => {
    started.office.isOpen = false;
    expect((await started.call('greet')).isError).toBe(true);
    expect((await started.call('ring')).isError).toBe(false);
  });

  it('refuse guarded routes of the application as well', async () => {
    expect((await started.ring()).status).toBe(200);
    started.office.isOpen = false;
    expect((await started.ring()).status).toBe(403);
    expect(records.kept.map(({ success }) => success)).toEqual([true, false]);
  });

  it('permit nothing that a gate of Parley refuses', async () => {
    const refused = await started.call('create_object', { class_name: 'Post', fields: { title: 'x' } });
    expect(refused).toMatchObject({ isError: true, code: 'permission_denied' });
    // A guard behind the gates is not asked.
    expect(started.office.heard).toEqual(['saw Refused']);
  });

  it('refuse where they fail, without a word of why to the caller', async () => {
    started.office.isBroken = true;
    const logged = vi.spyOn(Logger.prototype, 'error').mockReturnValue();
    const refused = await started.call('query_class', POSTS);
    logged.mockRestore();
    expect(refused).toMatchObject({ isError: true, code: 'internal_error' });
    expect(refused.wire).not.toMatch(/secret|mongodb|10\.0\.0\.1/);
    expect(records.kept).toMatchObject([{ success: false, error_code: 'internal_error' }]);
  });

  it('change no answer from outside of the gates', async () => {
    expect((await started.call('greet')).wire).not.toContain('forged');
  });
});

describe('steps ahead of every gate', () => {
  it('refuse before a gate is asked, with the message of an HTTP exception', async () => {
    const { app, call } = await start({ guards: { before: [NoFridays] } });
    NoFridays.isFriday = true;
    records.kept.length = 0;
    try {
      for (const name of ['greet', 'create_object'])
        expect(await call(name)).toMatchObject({
          code: 'access_denied',
          text: expect.stringContaining('not on Fridays'),
        });
      expect(records.kept).toMatchObject([
        { tool: 'greet', gate: 'application' },
        { tool: 'create_object', gate: 'application' },
      ]);
      NoFridays.isFriday = false;
      expect((await call('greet')).isError).toBe(false);
    } finally {
      await app.close();
    }
  });

  it('abort the handler of a call that they end', async () => {
    const { app, call } = await start({ interceptors: { before: [Hurried] } });
    const logged = vi.spyOn(Logger.prototype, 'error').mockReturnValue();
    try {
      expect(await call('wait')).toMatchObject({ isError: true, code: 'internal_error' });
      expect(stopped).toBe('cancelled');
    } finally {
      logged.mockRestore();
      await app.close();
    }
  });

  it('cannot answer in the place of the gates', async () => {
    const { app, call } = await start({ interceptors: { before: [Impatient] } });
    try {
      const answer = await call('query_class', POSTS);
      expect(answer).toMatchObject({ isError: true, code: 'internal_error' });
      expect(answer.wire).not.toContain('forged');
    } finally {
      await app.close();
    }
  });
});

describe('the start', () => {
  it('ends where a step is no class of its kind, or is made for each request', async () => {
    expect(() => ParleyModule.forRoot({ ...OPTIONS, guards: [Stamp] as never })).toThrow(ConfigError);
    @Injectable({ scope: Scope.REQUEST })
    class EachRequest extends NoFridays {}
    await expect(start({ guards: [EachRequest] })).rejects.toThrow(/EachRequest/);
  });
});
