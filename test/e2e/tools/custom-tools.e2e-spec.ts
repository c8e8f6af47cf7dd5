import 'reflect-metadata';
import {
  type ArgumentMetadata,
  BadRequestException,
  type CallHandler,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  type PipeTransform,
  SetMetadata,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import { IsInt, IsOptional, IsString, Length, Min } from 'class-validator';
import { Observable, map, of, throwError } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  defineTool,
  ParleyExecutionContext,
  Prompt,
  type PromptCall,
  SubAgents,
  Tool,
  type ToolCall,
  ToolRegistry,
  ToolRunner,
} from '@parley/server';
import { createTestingApplication, type TestingApplication } from '@parley/testing';
import { POSTS_SEED, POSTS_POLICY, SECRET } from '../../fixtures/posts.fixture.js';

class Overdue {
  @IsInt()
  @Min(1)
  days!: number;

  @IsOptional()
  @IsString()
  @Length(1, 20)
  status?: string;
}

const Search = z.object({ word: z.string().min(2), limit: z.number().int().default(3) });

@Injectable()
class OnlyTitled implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const call = ParleyExecutionContext.create(context);
    const allowed = Reflect.getMetadata('names', context.getHandler()) as string[] | undefined;
    return allowed?.includes(call.getAgent().definition.name) ?? call.getTool().name === 'never_so';
  }
}

@Injectable()
class Wraps implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map((data: unknown) => ({ wrapped: data })));
  }
}

@Injectable()
class Shouts implements PipeTransform {
  readonly met: ArgumentMetadata[] = [];
  transform(value: { word: string }, metadata: ArgumentMetadata) {
    this.met.push(metadata);
    if (value.word === 'refused') throw new BadRequestException('word: not this one');
    return { ...value, word: value.word.toUpperCase() };
  }
}

@Catch(RangeError)
class AnswersRange implements ExceptionFilter {
  catch(error: RangeError) {
    return { outOfRange: error.message };
  }
}

@Injectable()
class LibraryTools {
  constructor(
    private readonly subAgents: SubAgents,
    private readonly runner: ToolRunner,
  ) {}

  @Tool({ name: 'overdue', description: 'By a class.', input: Overdue })
  overdue(input: Overdue) {
    return { isInstance: input instanceof Overdue, days: input.days };
  }

  @Tool({
    name: 'find_word',
    description: 'By a Standard Schema.',
    input: Search,
    output: z.object({ limit: z.number() }),
  })
  word(input: z.output<typeof Search>) {
    return input.word === 'liar' ? { limit: `not ${SECRET}` } : { limit: input.limit };
  }

  @Tool({
    name: 'by_schema',
    description: 'By JSON Schema.',
    input: {
      type: 'object',
      properties: { count: { type: 'integer', minimum: 1 }, order: { type: 'string', default: 'asc' } },
      required: ['count'],
      additionalProperties: false,
    },
  })
  bySchema(input: unknown) {
    return input;
  }

  @Tool({ name: 'guarded', description: 'For some.' })
  @SetMetadata('names', ['writer'])
  @UseGuards(OnlyTitled)
  guarded() {
    return 'inside';
  }

  @Tool({ name: 'wrapped', description: 'Intercepted.' })
  @UseInterceptors(Wraps)
  wrapped() {
    return of('first', 'last');
  }

  @Tool({ name: 'shouted', description: 'Piped.', input: Search })
  @UsePipes(Shouts)
  shouted(input: z.output<typeof Search>, call: ToolCall) {
    return { word: input.word, agent: call.agent.definition.name };
  }

  @Tool({ name: 'filtered', description: 'Filtered.' })
  @UseFilters(AnswersRange)
  filtered(): Observable<unknown> {
    return throwError(() => new RangeError('too far'));
  }

  @Tool({ name: 'broken', description: 'Throws an error.' })
  broken() {
    throw new Error(`broken: ${SECRET}`);
  }

  @Tool({ name: 'steps', description: 'Emits its progress.' })
  steps() {
    return of('reading', { progress: 2, total: 3, message: 'writing' }, 'anything', { done: true });
  }

  @Tool({ name: 'delegates', description: 'Asks as a sub-agent.' })
  async delegates(_args: unknown, call: ToolCall) {
    const child = await this.subAgents.delegate(call, { classes: { only: ['Author'] } });
    const run = async (class_name: string) => {
      const outcome = await this.runner.run('count_objects', { class_name }, child);
      return outcome.ok ? 'counted' : outcome.refusal.code;
    };
    return { author: await run('Author'), post: await run('Post') };
  }

  @Prompt({
    name: 'weekly',
    description: 'The week.',
    arguments: [{ name: 'week', description: 'Which', required: true }],
  })
  async weekly({ records, args }: PromptCall) {
    return `Week ${args.get('week')}: ${await records.count('Post')} posts`;
  }
}

let app: TestingApplication;
beforeAll(async () => {
  app = await createTestingApplication({
    seed: POSTS_SEED,
    policy: POSTS_POLICY,
    agents: { reader: { tenantId: 'acme' }, writer: { tenantId: 'acme', permissions: 'write' } },
    tools: [LibraryTools],
    providers: [OnlyTitled, Wraps, Shouts],
  });
});
afterAll(() => app.close());

const call = async (name: string, args: object = {}, agent = 'reader') =>
  (await app.as(agent).call<unknown>(name, args)).data;

describe('arguments of a custom tool', () => {
  it.each([
    ['overdue', { days: 3 }, { isInstance: true, days: 3 }],
    ['find_word', { word: 'ab' }, { limit: 3 }],
    ['by_schema', { count: 1 }, { count: 1, order: 'asc' }],
  ])('of %s reach it as its schema reads them', async (name, args, expected) => {
    expect(await call(name, args)).toEqual(expected);
  });

  it.each([
    ['overdue', { days: 0 }, 'days must not be less than 1'],
    ['overdue', { days: 1, admin: true }, 'property admin should not exist'],
    ['overdue', { days: 1, __proto__x: {} }, 'should not exist'],
    ['overdue', {}, 'days must be'],
    ['find_word', { word: 'a' }, 'word: '],
    ['by_schema', { count: '1' }, 'count: must be integer'],
    ['by_schema', { count: 1, extra: 1 }, "must NOT have additional properties 'extra'"],
    ['by_schema', {}, "must have required property 'count'"],
  ])('of %s that do not fit never reach it: %j', async (name, args, message) => {
    const refusal = await app.as('reader').expectRefused('invalid_argument', 'arguments', name, args);
    expect(refusal.text).toContain(message);
  });

  it('are listed as JSON Schema, whatever they were declared with', async () => {
    const tools = await app.as('reader').listTools();
    const schemaOf = (name: string) => tools.find((tool) => tool.name === name)?.inputSchema;
    expect(schemaOf('overdue')).toEqual({
      type: 'object',
      properties: {
        days: { type: 'integer', minimum: 1 },
        status: { type: 'string', minLength: 1, maxLength: 20 },
      },
      required: ['days'],
      additionalProperties: false,
    });
    expect(schemaOf('find_word')).toMatchObject({
      properties: { word: { minLength: 2 } },
      required: ['word'],
    });
  });
});

describe('a result', () => {
  it('that its own schema does not allow is an error of the tool, reported without the value', async () => {
    const reader = app.as('reader');
    const refusal = await reader.expectRefused('internal_error', 'handler', 'find_word', { word: 'liar' });
    expect(refusal.text).not.toContain(SECRET);
    expect(refusal.failed).toBe(true);
  });
});

describe('Nest enhancers of a tool', () => {
  it('guard it after the gates, by metadata of the method, with the call at hand', async () => {
    expect(await call('guarded', {}, 'writer')).toBe('inside');
    const refusal = await app.as('reader').expectRefused('access_denied', 'application', 'guarded');
    expect(refusal.text).toBe('Forbidden resource');
  });

  it('intercept its result', async () => {
    expect(await call('wrapped')).toEqual({ wrapped: 'last' });
  });

  it('pipe its arguments and nothing else', async () => {
    expect(await call('shouted', { word: 'quiet' })).toEqual({ word: 'QUIET', agent: 'reader' });
    const reader = app.as('reader');
    const refusal = await reader.expectRefused('invalid_argument', 'application', 'shouted', {
      word: 'refused',
    });
    expect(refusal.text).toContain('not this one');
    expect(app.get(Shouts).met.map(({ type }) => type)).toEqual(['body', 'body']);
  });

  it('filter what it throws', async () => {
    expect(await call('filtered')).toEqual({ outOfRange: 'too far' });
  });

  it('cannot skip a gate: what the tier forbids never meets them', async () => {
    app.get(ToolRegistry).register({
      ...defineTool({ name: 'for_admins', description: 'No.', permission: 'admin' }),
      handler: () => 'reached',
    });
    await app.as('writer').expectRefused('permission_denied', 'tier', 'for_admins');
  });

  it('show no internal error', async () => {
    const refusal = await app.as('reader').expectRefused('internal_error', 'handler', 'broken');
    expect(refusal.text).not.toContain(SECRET);
    expect(JSON.stringify(refusal.record)).not.toContain(SECRET);
  });
});

describe('a tool', () => {
  it('reports as progress what it emits, and answers with the last', async () => {
    const result = await app.as('reader').call('steps');
    expect(result.data).toEqual({ done: true });
    expect(result.progress).toMatchObject([
      { progress: 1, message: 'reading' },
      { progress: 2, total: 3, message: 'writing' },
      { progress: 3 },
    ]);
  });

  it('asks as a sub-agent with less than its own agent has', async () => {
    expect(await call('delegates')).toEqual({ author: 'counted', post: 'access_denied' });
  });

  it('comes and goes while the service runs', async () => {
    const take = app.get(ToolRegistry).register({
      ...defineTool({ name: 'brief', description: 'Here for a while.', input: z.object({ n: z.number() }) }),
      handler: ({ n }) => n,
    });
    expect(await call('brief', { n: 7 })).toBe(7);
    await app.as('reader').expectRefused('invalid_argument', 'arguments', 'brief', { n: 'x' });
    take();
    const attempt = await app.as('reader').attempt('brief', { n: 7 });
    expect(attempt).toMatchObject({ allowed: false, refusal: { code: 'permission_denied' } });
  });
});

describe('@Prompt', () => {
  it('reads with the rights of the caller', async () => {
    const weekly = { name: 'weekly', arguments: { week: '7' } };
    const reply = await app.as('reader').request('prompts/get', weekly);
    expect(JSON.stringify(reply)).toMatch(/Week 7: \d+ posts/);
  });
});
