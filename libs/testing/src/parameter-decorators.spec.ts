import {
  Body,
  type CanActivate,
  createParamDecorator,
  type ExecutionContext,
  Injectable,
  type PipeTransform,
  Query,
  type Type,
  UseGuards,
  UsePipes,
} from '@nestjs/common';
import {
  AgentMethod,
  Ctx,
  ParleyExecutionContext,
  ParseClass,
  Payload,
  Prompt,
  Tool,
  type ToolCall,
} from '@parley/server';
import { describe, expect, it } from 'vitest';
import { createTestingApplication } from './create-testing-application.js';

const Caller = createParamDecorator(
  (_: unknown, context: ExecutionContext) => ParleyExecutionContext.create(context).getAgent().principal,
);
const RequestUser = createParamDecorator(
  (_: unknown, context: ExecutionContext) =>
    context.switchToHttp().getRequest<{ user?: unknown }>().user ?? 'nobody',
);
const EVIL = { tenant: 'evil', user: 'root' };
const ANYTHING = { input: { type: 'object', additionalProperties: true } } as const;
const tool = (name: string) => ({ name, description: name, ...ANYTHING });

@Injectable()
class Suffix implements PipeTransform {
  transform(value: unknown) {
    return typeof value === 'string' ? `${value}!` : value;
  }
}

@Injectable()
class UserGuard implements CanActivate {
  canActivate(context: ExecutionContext) {
    return context.switchToHttp().getRequest<{ user?: unknown }>().user === 'root';
  }
}

@Injectable()
class Desk {
  @Tool(tool('alone'))
  alone(@Caller() caller: unknown) {
    return { caller };
  }

  @Tool(tool('first'))
  first(@Caller() caller: unknown, @Ctx() call: ToolCall, @Payload() args: unknown) {
    return { caller, tool: call.tool.name, args };
  }

  @Tool(tool('behind'))
  behind(args: unknown, call: ToolCall, @Caller() caller: unknown) {
    return { args, tool: call.tool.name, caller };
  }

  @Tool(tool('one_of_them'))
  oneOfThem(@Payload('tenant') tenant: unknown, @Body('constructor') inherited: unknown) {
    return { tenant, inherited: inherited === undefined };
  }

  @Tool(tool('piped'))
  @UsePipes(Suffix)
  piped(@Caller() caller: unknown, @Payload('tenant', Suffix) tenant: unknown, @Ctx() call: ToolCall) {
    return { caller, tenant, tool: call.tool.name };
  }

  @Tool(tool('of_a_request'))
  ofRequest(@RequestUser() user: unknown) {
    return { user };
  }

  @Tool(tool('guarded'))
  @UseGuards(UserGuard)
  guarded() {
    return { admitted: true };
  }
}

const OPTIONS = { agents: { clerk: { permissions: 'readonly' } } } as const;

async function startWith(type: Type) {
  const app = await createTestingApplication({ ...OPTIONS, tools: [type] });
  return app.close();
}

async function callDesk(name: string) {
  const app = await createTestingApplication({ ...OPTIONS, tools: [Desk] });
  try {
    const agent = app.parley.agentFor({ agent: 'clerk', principal: 'ada' });
    const outcome = await app.parley.runner.run(name, EVIL, {
      agent,
      signal: new AbortController().signal,
      progress: () => undefined,
    } as never);
    return outcome.ok ? outcome.data : outcome.refusal.code;
  } finally {
    await app.close();
  }
}

describe('A decorated parameter of a tool', () => {
  it('has what its decorator returns, and never what the agent sent', async () => {
    expect(await callDesk('alone')).toEqual({ caller: 'ada' });
    expect(await callDesk('first')).toEqual({ caller: 'ada', tool: 'first', args: EVIL });
    expect(await callDesk('behind')).toEqual({ args: EVIL, tool: 'behind', caller: 'ada' });
  });

  it('has the arguments, or one of their own members, by @Payload or @Body', async () => {
    expect(await callDesk('one_of_them')).toEqual({ tenant: 'evil', inherited: true });
  });

  it('passes pipes, and the call passes none', async () => {
    expect(await callDesk('piped')).toEqual({ caller: 'ada!', tenant: 'evil!!', tool: 'piped' });
  });

  it('reads no request out of the arguments, and neither does a guard', async () => {
    expect(await callDesk('of_a_request')).toBe('internal_error');
    expect(await callDesk('guarded')).toBe('internal_error');
  });
});

class OtherTransport {
  @Tool(tool('other'))
  other(@Query() query: unknown) {
    return { query };
  }
}

class Gap {
  @Tool(tool('gap'))
  gap(@Caller() caller: unknown, args: unknown) {
    return { caller, args };
  }
}

class Twice {
  @Tool(tool('twice'))
  twice(@Payload() @Caller() caller: unknown) {
    return { caller };
  }
}

class OnPrompt {
  @Prompt({ name: 'p', description: 'p' })
  prompt(@Caller() caller: unknown) {
    return String(caller);
  }
}

@ParseClass('Post')
class OnMethod {
  @AgentMethod()
  archive(@Caller() caller: unknown) {
    return { caller };
  }
}

describe('The start ends, and says what to write,', () => {
  it.each([
    ['for a decorator of another transport', OtherTransport, /OtherTransport\.other: parameter 0 .*@Payload/],
    ['for a parameter without a decorator behind one with one', Gap, /Gap\.gap: parameter 1 .*@Payload/],
    ['for two decorators on one parameter', Twice, /Twice\.twice: parameter 0 has two/],
    ['for a decorated parameter of a prompt', OnPrompt, /OnPrompt\.prompt: .*@Prompt/],
    ['for a decorated parameter of a declared method', OnMethod, /OnMethod\.archive: .*@AgentMethod/],
  ])('%s', async (_, type, message) => {
    await expect(startWith(type)).rejects.toThrow(message);
  });
});
