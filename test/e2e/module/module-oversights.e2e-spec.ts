import 'reflect-metadata';
import {
  type CanActivate,
  Controller,
  Get,
  Injectable,
  Logger,
  Module,
  type ModuleMetadata,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { APP_GUARD, LazyModuleLoader, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest';
import {
  getParleyToken,
  InjectParley,
  Parley,
  ParleyModule,
  type ParleyModuleOptions,
  Prompt,
  Tool,
  type ToolCall,
} from '@parley/server';
import { callTool } from '../../support/service.js';

const OPTIONS: ParleyModuleOptions = {
  agents: { desk: { permissions: 'readonly' } },
  auth: [{ apiKey: 'key-of-the-desk', agent: 'desk' }],
  policy: { unlistedClasses: 'allow', suppressMasterKeyWarning: true },
};

@Injectable()
class Greeting {
  @Tool({ name: 'greet', description: 'Says hello.' })
  greet() {
    return { hello: 'there' };
  }
}

@Injectable()
class Nothing {}

/** As esbuild leaves it: a constructor, and no word of what it takes. */
class Unrecorded {
  constructor(readonly nothing: Nothing) {}

  @Tool({ name: 'unrecorded', description: 'Uses what it injects.' })
  use() {
    return {};
  }
}
Reflect.deleteMetadata('design:paramtypes', Unrecorded);

@Injectable()
class Forgetful {
  @Tool({ name: 'not_waited_for', description: 'Does not wait for a refusal.' })
  forget(_: object, call: ToolCall) {
    void call.records.find('NoSuchClass');
    return { rows: call.records.count('NoSuchClass') };
  }

  @Tool({ name: 'large', description: 'Counts in bigint.' })
  large() {
    return { total: 1n };
  }
}

@Injectable()
class Faulty {
  @Tool({ name: 'throws', description: 'Fails at once.' })
  throws() {
    throw new Error('the oven is off');
  }

  @Tool({ name: 'rejects', description: 'Fails later.' })
  async rejects() {
    await Promise.resolve();
    throw new TypeError('the oven is off');
  }
}

async function open(
  imports: ModuleMetadata['imports'],
  providers: ModuleMetadata['providers'] = [],
  controllers: Type[] = [],
) {
  @Module({ imports: imports ?? [], providers, controllers })
  class AppModule {}
  const module = await Test.createTestingModule({ imports: [AppModule] }).compile();
  const application = module.createNestApplication(new ExpressAdapter(), { logger: logged });
  await application.listen(0, '127.0.0.1');
  return {
    [Symbol.asyncDispose]: () => application.close(),
    url: `${await application.getUrl()}/mcp`,
    get: application.get.bind(application),
  };
}

/** Every line of a logger, as text. */
const lines: string[] = [];
const write = (...said: unknown[]) => void lines.push(said.map(String).join(' '));
const logged = { log: write, error: write, warn: write, debug: write };

let warned: MockInstance<Logger['warn']>;
beforeEach(() => {
  lines.length = 0;
  warned = vi.spyOn(Logger.prototype, 'warn');
});
afterEach(() => vi.restoreAllMocks());
const warnings = () => warned.mock.calls.map(([text]) => String(text));

@Injectable()
class Everybody implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

@Injectable()
class Accounts {
  constructor(@InjectParley('billing') readonly billing: Parley) {}
}

describe('the start says in one line for each instance', () => {
  const startLines = () => lines.filter((line) => line.startsWith('Parley ('));

  it('where MCP is, and how many tools and agents there are', async () => {
    await using _ = await open(
      [
        ParleyModule.forRoot(OPTIONS),
        ParleyModule.forRoot({ ...OPTIONS, name: 'billing', server: { path: '/billing' } }),
        ParleyModule.forFeature([Greeting], { instance: 'billing' }),
      ],
      [Greeting],
    );
    const [desk = '', billing = '', ...others] = startLines().sort((one, other) => one.length - other.length);
    expect(others).toEqual([]);
    const [, tools] = /^Parley \(default\) at \/mcp: (\d+) tools, 1 agent Parley$/.exec(desk) ?? [];
    expect(billing).toBe(`Parley (billing) at /billing: ${Number(tools) + 1} tools, 1 agent Parley`);
  });

  it('nothing of the Nest application that an instance is', async () => {
    @Module({ imports: [ParleyModule.forRoot(OPTIONS)], providers: [Greeting] })
    class AppModule {}
    const application = await NestFactory.create(AppModule, new ExpressAdapter(), { logger: logged });
    await application.listen(0, '127.0.0.1');
    const simulation = await application.get(Parley).openSimulation();
    await simulation.close();
    await application.close();
    expect(lines.join('\n')).not.toMatch(/InstanceModule|KernelModule|RoutesModule|ToolsController|Mapped/);
    expect(lines.filter((line) => line.includes('Starting Nest application'))).toHaveLength(1);
    expect(lines.filter((line) => line.includes('successfully started'))).toHaveLength(1);
    // Those of the application around it are.
    expect(lines.join('\n')).toContain('ParleyModule dependencies initialized');
  });

  it('through a logger that the application chose while the instance started', async () => {
    const chosen: string[] = [];
    const other = { ...logged, log: (...said: unknown[]) => void chosen.push(said.map(String).join(' ')) };
    const useFactory = async () => {
      await Promise.resolve();
      return OPTIONS;
    };
    const module = await Test.createTestingModule({ imports: [ParleyModule.forRootAsync({ useFactory })] })
      .setLogger(logged)
      .compile();
    const application = module.createNestApplication(new ExpressAdapter(), { logger: logged });
    const listening = application.listen(0, '127.0.0.1');
    application.useLogger(other);
    await listening;
    expect(chosen.filter((line) => line.startsWith('Parley ('))).toHaveLength(1);
    chosen.length = 0;
    new Logger('After').log('still there');
    expect(chosen).toEqual(['still there After']);
    await application.close();
  });

  it('which global enhancers the application has', async () => {
    await using _ = await open(
      [ParleyModule.forRoot(OPTIONS)],
      [{ provide: APP_GUARD, useClass: Everybody }],
    );
    expect(startLines()).toEqual([expect.stringContaining('; global guards Everybody do not run on tools')]);
  });
});

describe('an instance with a name', () => {
  it('is injected by it', async () => {
    @Module({
      imports: [ParleyModule.forRoot({ ...OPTIONS, name: 'billing' })],
      providers: [Accounts],
    })
    class AppModule {}
    const module = await Test.createTestingModule({ imports: [AppModule] }).compile();
    expect(module.get(Accounts).billing).toBe(module.get(getParleyToken('billing')));
    await module.close();
  });
});

describe('the start says what cannot have been meant', () => {
  it('nothing of an application that is in order', async () => {
    await using _ = await open(
      [ParleyModule.forRoot(OPTIONS), ParleyModule.forFeature([Greeting])],
      [Greeting],
    );
    expect(warnings()).toEqual([]);
  });

  it('a prompt with a name that some hosts take for no command', async () => {
    @Injectable()
    class Reports {
      @Prompt({ name: 'weekly report', description: 'The week.' })
      weekly() {
        return 'The week';
      }
    }
    await using _ = await open([ParleyModule.forRoot(OPTIONS)], [Reports]);
    expect(warnings()).toEqual([expect.stringMatching(/^prompt 'weekly report': the name is not 1 to 64/)]);
  });

  it('a tool that no instance serves', async () => {
    await using _ = await open([ParleyModule.forRoot({ ...OPTIONS, discovery: false })], [Greeting]);
    expect(warnings()).toEqual([
      'tools that no ParleyModule.forFeature names are not served: Greeting; discovery: true of one instance serves them',
    ]);
  });

  it('a forFeature for an instance that is not there', async () => {
    await using _ = await open(
      [ParleyModule.forRoot(OPTIONS), ParleyModule.forFeature([Greeting], { instance: 'billing' })],
      [Greeting],
    );
    expect(warnings()).toEqual([
      "forFeature: no instance 'billing' in this application (there are: default); nowhere served: Greeting",
    ]);
  });

  it('a forFeature without Parley', async () => {
    await using _ = await open([ParleyModule.forFeature([Greeting])], [Greeting]);
    expect(warnings()).toEqual([
      "forFeature: no instance 'default' in this application (ParleyModule.forRoot is not imported); nowhere served: Greeting",
    ]);
  });

  it('a class that forFeature names and no module provides, by ending', async () => {
    const start = open([ParleyModule.forRoot(OPTIONS), ParleyModule.forFeature([Greeting])]);
    await expect(start).rejects.toThrow(
      new TypeError('forFeature: no module provides Greeting: add it to providers of AppModule'),
    );
  });

  it('a class that two modules provide', async () => {
    @Module({ providers: [Greeting] })
    class DeskModule {}
    await using _ = await open([ParleyModule.forRoot(OPTIONS), DeskModule], [Greeting]);
    expect(warnings()).toEqual([
      'Greeting is made more than once, because several modules provide it: that of AppModule is served, ' +
        'not that of DeskModule; export it from AppModule instead',
    ]);
  });

  it('a guard that Nest leaves out, because a factory makes the class, by ending', async () => {
    @Injectable()
    class GuardedGreeting {
      @UseGuards(Everybody)
      @Tool({ name: 'greet_behind', description: 'Says hello.' })
      greet() {
        return { hello: 'there' };
      }
    }
    const made = { provide: GuardedGreeting, useFactory: () => new GuardedGreeting() };
    await expect(open([ParleyModule.forRoot(OPTIONS)], [made])).rejects.toThrow(
      /^Everybody would not run on GuardedGreeting/,
    );
  });

  it('two classes that declare one tool, by ending with both names', async () => {
    @Injectable()
    class Welcome {
      @Tool({ name: 'greet', description: 'Says welcome.' })
      greet() {
        return {};
      }
    }
    await expect(open([ParleyModule.forRoot(OPTIONS)], [Greeting, Welcome])).rejects.toThrow(
      /greet.* by Greeting and by Welcome/,
    );
  });

  it('nothing of gates that it leaves out, which are closed', async () => {
    const gates = { PARSE_AGENT_ALLOW_WRITE_TOOLS: true };
    const environment = { PARSE_AGENT_ALLOW_RAW_CRUD: 'true' };
    await using app = await open([ParleyModule.forRoot({ ...OPTIONS, gates, environment })]);
    expect(app.get(Parley).introspection.gates).toEqual({
      PARSE_AGENT_ALLOW_WRITE_TOOLS: true,
      PARSE_AGENT_ALLOW_SCHEMA_OPS: false,
      PARSE_AGENT_ALLOW_RAW_CRUD: false,
      PARSE_AGENT_ALLOW_RAW_SCHEMA: false,
    });
    expect(warnings()).toEqual([]);
  });

  it('a listed class with nothing to serve', async () => {
    await using _ = await open(
      [ParleyModule.forRoot(OPTIONS), ParleyModule.forFeature([Nothing])],
      [Nothing],
    );
    expect(warnings()).toEqual([
      'forFeature: Nothing has no @Tool, @Prompt, @Resource, @AgentMethod or @ParseClass: nothing of it is served',
    ]);
  });

  it('a listed class whose constructor Nest cannot read', async () => {
    await using _ = await open(
      [ParleyModule.forRoot(OPTIONS), ParleyModule.forFeature([Unrecorded])],
      [Unrecorded],
    );
    expect(warnings()).toEqual([
      expect.stringContaining('Unrecorded gets undefined for what its constructor takes'),
    ]);
  });

  it('routes of the application that lie below a path of an instance', async () => {
    @Controller('mcp')
    class Files {
      @Get(['files', 'files/:id'])
      list() {
        return 'never';
      }
    }
    @Controller(['mcpx', 'elsewhere'])
    class Others {
      @Get()
      list() {
        return 'there';
      }
    }
    const app = await open([ParleyModule.forRoot(OPTIONS)], [], [Files, Others]);
    expect(warnings()).toEqual([
      'routes of the application below /mcp are never reached: Files.list /mcp/files, Files.list /mcp/files/:id; ' +
        'move them, or server.path',
    ]);
    const origin = app.url.replace('/mcp', '');
    expect((await fetch(`${origin}/mcp/files`)).status).toBe(404);
    expect(await (await fetch(`${origin}/mcpx`)).text()).toBe('there');
    await app[Symbol.asyncDispose]();
  });

  it('tools of a module that is loaded lazily, once', async () => {
    @Module({ providers: [Greeting] })
    class LateModule {}
    await using app = await open([ParleyModule.forRoot(OPTIONS)]);
    const loader = app.get(LazyModuleLoader);
    for (const _ of [1, 2]) await loader.load(() => LateModule);
    expect(warnings()).toEqual([
      'tools of modules that are loaded lazily are not served: Greeting; import their module, or register them with ToolRegistry',
    ]);
    expect(await callTool(app, 'greet', {}, { 'X-MCP-API-Key': 'key-of-the-desk' })).toMatchObject({
      isError: true,
    });
  });

  it('an instance that admits nobody', async () => {
    await using _ = await open([ParleyModule.forRoot({ ...OPTIONS, auth: [] })]);
    expect(warnings()).toEqual([
      "nobody is admitted to instance 'default': give `auth`, AGENT_FACTORY or an Authenticator",
    ]);
  });

  it('a factory that returns no options, by ending', async () => {
    const nothing = { useFactory: () => undefined as unknown as ParleyModuleOptions };
    await expect(open([ParleyModule.forRootAsync(nothing)])).rejects.toThrow(
      'useFactory: returned no options',
    );
  });
});

describe('what a tool forgets', () => {
  it('never ends the process, and is answered as an internal error', async () => {
    await using app = await open([ParleyModule.forRoot(OPTIONS)], [Forgetful]);
    for (const tool of ['not_waited_for', 'large']) {
      const answer = await callTool(app, tool, {}, { 'X-MCP-API-Key': 'key-of-the-desk' });
      expect(answer).toMatchObject({ isError: true });
      expect(JSON.stringify(answer)).toContain('internal error');
      expect(JSON.stringify(answer)).not.toMatch(/promise|bigint/);
    }
    const logged = lines.join('\n');
    expect(logged).toContain("'rows' of the result is a promise: an await is missing");
    expect(logged).toContain("'total' of the result is a bigint");
  });
});

describe('an exception of a tool', () => {
  it.each(['throws', 'rejects'])('is reported once, by the name of the tool: %s', async (name) => {
    await using application = await open([ParleyModule.forRoot(OPTIONS)], [Faulty]);
    lines.length = 0;
    await callTool(application, name, {}, { 'X-MCP-API-Key': 'key-of-the-desk' });
    const reported = lines.filter((line) => line.includes('the oven is off') && !line.includes('call tool='));
    expect(reported).toEqual([expect.stringMatching(new RegExp(`^'${name}' failed: .*the oven is off`))]);
  });
});
