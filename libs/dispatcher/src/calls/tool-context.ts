import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type ExecutionContext,
  Injectable,
  Logger,
  type OnModuleInit,
  Optional,
  type Type,
} from '@nestjs/common';
import { PIPES_METADATA } from '@nestjs/common/constants.js';
import { DiscoveryService, ExternalContextCreator } from '@nestjs/core';
import { isObservable, type Observable } from 'rxjs';
import type { Agent, ProgressUpdate } from '#core';
import {
  defineParameters,
  listAgentMethods,
  BUILT_IN_TOOLS,
  impliesWriting,
  MethodRegistry,
  pickArguments,
  readParameters,
  type ToolCall,
  toolDeclarations,
  type ToolDefinition,
  type ToolHandler,
  type ToolParameters,
  type ToolRegistration,
  ToolRegistry,
  UNDECORATED_PARAMETERS,
} from '#tools';
import { NO_OTHER_TRANSPORT, TOOL_CONTEXT_TYPE } from './tool-call.js';

/** The access of a guard, an interceptor, a filter or a decorator of a tool to its call. */
export class ParleyExecutionContext {
  private constructor(private readonly host: ExecutionContext) {}

  /**
   * Returns the call behind the context of a guard, interceptor or filter of a tool. @throws TypeError in a context
   * that is not of a tool: check `isTool` first where both occur
   */
  static create(context: ExecutionContext): ParleyExecutionContext {
    if (!ParleyExecutionContext.isTool(context))
      throw new TypeError(`the context is of type '${context.getType()}', not of a tool`);
    return new ParleyExecutionContext(context);
  }

  /** Whether a context belongs to a tool. */
  static isTool(context: ExecutionContext): boolean {
    return context.getType<string>() === TOOL_CONTEXT_TYPE;
  }

  /** The arguments after validation by the tool's schema. */
  getArguments<T = Readonly<Record<string, unknown>>>(): T {
    return this.host.getArgByIndex<T>(0);
  }

  /** The call, with its governed data access. */
  getCall(): ToolCall {
    return this.host.getArgByIndex<ToolCall>(1);
  }

  /** The calling agent. */
  getAgent(): Agent {
    return this.getCall().agent;
  }

  /** The tool that is called. */
  getTool(): ToolDefinition {
    return this.getCall().tool;
  }
}

const PARAMETERS = {
  exchangeKeyForValue: (kind: number, property: unknown, [args]: unknown[]) =>
    pickArguments(kind, property, args),
};
const ENHANCERS = { guards: true, interceptors: true, filters: true };

type Method = (this: unknown, ...parameters: unknown[]) => unknown;

/** Also the token of the options: an instance without them has no global pipes. */
abstract class ToolContextOptions {
  /** Whether there are global pipes: they run on tools without `@UsePipes` as well. */
  abstract readonly globalPipes: boolean;
}

/**
 * The Nest context of a tool: `@UseGuards`, `@UseInterceptors`, `@UsePipes` and `@UseFilters` of its method and class,
 * of type `mcp`. Parley's gates are not part of it: they run earlier, and arguments that do not match the schema never
 * reach it.
 * Pipes receive the arguments and what parameter decorators return, never the call.
 */
@Injectable()
export class ToolContext {
  private readonly contexts: ExternalContextCreator;

  constructor(
    contexts: ExternalContextCreator,
    @Optional() private readonly options?: ToolContextOptions,
  ) {
    this.contexts = withoutReports(withoutRequests(contexts));
  }

  /** @throws TypeError for parameter decorators that no tool can have */
  createHandler(instance: object, methodName: string): ToolHandler {
    const method = Reflect.get(instance, methodName) as Method;
    const parameters = readParameters(instance, methodName);
    if (parameters) return this.createFilledHandler(instance, methodName, method, parameters);
    const piped = [method, instance.constructor].some((host) => Reflect.hasMetadata(PIPES_METADATA, host));
    return piped || this.options?.globalPipes === true
      ? this.createFilledHandler(instance, methodName, method, UNDECORATED_PARAMETERS)
      : this.plain(instance, methodName, method);
  }

  private plain(instance: object, methodName: string, method: Method): ToolHandler {
    const entry = standInFor(method, function (this: unknown, args, call) {
      return readResult(method.call(this, args, call), call as ToolCall);
    });
    return this.contexts.create(
      instance,
      entry,
      methodName,
      undefined,
      undefined,
      undefined,
      undefined,
      ENHANCERS,
      TOOL_CONTEXT_TYPE,
    ) as ToolHandler;
  }

  /** Nest passes only what it fills in to such a method. The call is stored around it. */
  private createFilledHandler(
    instance: object,
    methodName: string,
    method: Method,
    parameters: ToolParameters,
  ): ToolHandler {
    // Used for these tools alone, because async tracking slows every promise of the process.
    const calls = new AsyncLocalStorage<ToolCall>();
    const entry = standInFor(method, function (this: unknown, ...filled) {
      const call = calls.getStore();
      // Nest runs the method inside the call or not at all.
      if (!call) throw new Error('a tool ran outside of a call');
      for (const position of parameters.calls) filled[position] = call;
      return readResult(method.apply(this, filled), call);
    });
    const inContext = this.contexts.create(
      instance,
      entry,
      methodName,
      defineParameters(instance, methodName, parameters),
      PARAMETERS,
      undefined,
      undefined,
      ENHANCERS,
      TOOL_CONTEXT_TYPE,
    ) as ToolHandler;
    return (args, call) => calls.run(call, () => inContext(args, call));
  }
}

/** The contexts of Nest: what makes one for guards, for interceptors and for parameter decorators. */
interface ContextMakers {
  readonly guardsConsumer: { createContext(...given: unknown[]): ExecutionContext };
  readonly interceptorsConsumer: { createContext(...given: unknown[]): ExecutionContext };
  readonly contextUtils: { getContextFactory(...given: unknown[]): (args: unknown[]) => ExecutionContext };
}

/**
 * A tool has no request. Nest's contexts would answer its first argument as one, which is what the agent sent: a guard or
 * a parameter decorator that reads `request.user` would believe the agent.
 */
function withoutRequests(contexts: ExternalContextCreator): ExternalContextCreator {
  const { guardsConsumer, interceptorsConsumer, contextUtils } = contexts as unknown as ContextMakers;
  const made: ContextMakers = {
    guardsConsumer: derive(guardsConsumer, {
      createContext: (...given) => withoutRequest(guardsConsumer.createContext(...given)),
    }),
    interceptorsConsumer: derive(interceptorsConsumer, {
      createContext: (...given) => withoutRequest(interceptorsConsumer.createContext(...given)),
    }),
    contextUtils: derive(contextUtils, {
      getContextFactory: (...given) => {
        const create = contextUtils.getContextFactory(...given);
        return (args) => withoutRequest(create(args));
      },
    }),
  };
  return derive(contexts, made as unknown as Partial<ExternalContextCreator>);
}

interface ExceptionsHandler {
  invokeCustomFilters(exception: unknown, host: unknown): unknown;
}
interface FilterMakers {
  readonly filtersContextCreator: {
    create(...given: unknown[]): Pick<ExceptionsHandler, 'invokeCustomFilters'>;
  };
}

/** The pipeline reports an exception that no filter caught, by the name of its tool: Nest would report it as well. */
function withoutReports(contexts: ExternalContextCreator): ExternalContextCreator {
  const { filtersContextCreator } = contexts as unknown as FilterMakers;
  const made: FilterMakers = {
    filtersContextCreator: derive(filtersContextCreator, {
      create: (...given) => {
        const handler = filtersContextCreator.create(...given);
        return derive(handler, {
          next: (exception: unknown, host: unknown) => {
            // Where no filter takes the exception, Nest 11 says null, and Nest 12 undefined.
            const result = handler.invokeCustomFilters(exception, host);
            if (result === undefined || result === null) throw exception;
            return result;
          },
        } as Partial<typeof handler>);
      },
    }),
  };
  return derive(contexts, made as unknown as Partial<ExternalContextCreator>);
}

const derive = <T extends object>(of: T, changed: Partial<T>): T =>
  Object.assign(Object.create(of) as T, changed);

function withoutRequest(context: ExecutionContext): ExecutionContext {
  return Object.assign(context, NO_OTHER_TRANSPORT);
}

/** A stand-in for the method where Nest reads its metadata. */
function standInFor(method: Method, entry: Method): (...args: unknown[]) => unknown {
  for (const key of Reflect.getMetadataKeys(method) as unknown[])
    Reflect.defineMetadata(key, Reflect.getMetadata(key, method), entry);
  Object.defineProperty(entry, 'name', { value: method.name });
  return entry as (...args: unknown[]) => unknown;
}

/**
 * Converts the return value of a tool into one value. The emissions of an Observable are its progress and its last one
 * is the result: a text is a progress message, a progress update is sent as it is, any other value counts as one step.
 * The source is unsubscribed when the call ends.
 */
function readResult(returned: unknown, call: ToolCall): unknown {
  return isObservable(returned) ? readLast(returned, call) : returned;
}

function readLast(source: Observable<unknown>, { progress, signal }: ToolCall): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let steps = 0;
    let held: { readonly value: unknown } | null = null;
    const running = source.subscribe({
      next: (value) => {
        if (held) progress(toProgress(held.value, (steps += 1)));
        held = { value };
      },
      error: (error: unknown) => reject(error instanceof Error ? error : new Error(String(error))),
      complete: () => resolve(held?.value ?? null),
    });
    const stop = () => {
      running.unsubscribe();
      reject(new Error('the call is over'));
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    running.add(() => signal.removeEventListener('abort', stop));
  });
}

function toProgress(value: unknown, step: number): ProgressUpdate {
  if (typeof value === 'string') return { progress: step, message: value };
  const { progress } = (value ?? {}) as { progress?: unknown };
  return Number.isFinite(progress) ? (value as ProgressUpdate) : { progress: step };
}

/** Finds `@Tool` methods on the application's providers and registers them, each in the Nest context of its own enhancers. */
@Injectable()
export class ToolExplorer implements OnModuleInit {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly context: ToolContext,
    private readonly registry: ToolRegistry,
  ) {}

  onModuleInit(): void {
    const builtIn: ToolRegistration[] = [];
    const added: ToolRegistration[] = [];
    for (const { instance } of this.discovery.getProviders()) {
      const own = isBuiltIn(instance) ? builtIn : added;
      own.push(...toolsOf(instance, this.context));
    }
    this.registry.installBuiltIns(builtIn);
    this.registry.registerDeclared(added);
  }
}

/** The `@Tool` methods of a provider, each in the Nest context of its own enhancers. */
export function toolsOf(instance: unknown, context: ToolContext): ToolRegistration[] {
  if (instance === null || typeof instance !== 'object') return [];
  const prototype = Object.getPrototypeOf(instance) as object | null;
  if (prototype === null) return [];
  return toolDeclarations(prototype).map(({ methodName, ...declaration }) => ({
    ...declaration,
    handler: context.createHandler(instance, methodName),
    declared: { type: instance.constructor as Type, method: Reflect.get(instance, methodName) as Method },
  }));
}

/** Checks the class itself: a subclass of a built-in tool belongs to the application. */
function isBuiltIn(instance: unknown): boolean {
  const provider = (instance as { constructor?: unknown } | null | undefined)?.constructor;
  return BUILT_IN_TOOLS.some((own) => own === provider);
}

/** Finds `@AgentMethod`s on the application's `@ParseClass` providers and registers them. */
@Injectable()
export class MethodExplorer implements OnModuleInit {
  private readonly logger = new Logger(MethodExplorer.name);

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly registry: MethodRegistry,
  ) {}

  /** @throws MethodDeclarationError */
  onModuleInit(): void {
    for (const { instance } of this.discovery.getProviders()) {
      if (instance === null || typeof instance !== 'object') continue;
      for (const { className, method } of listAgentMethods(instance as object)) {
        this.registry.register(className, method);
        if (impliesWriting(method))
          this.logger.warn(
            `${className}.${method.name} is declared readonly but its name promises a change: any agent may call it`,
          );
      }
    }
  }
}
