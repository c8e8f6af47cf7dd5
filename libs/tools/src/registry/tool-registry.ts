import { Injectable, Logger } from '@nestjs/common';
import { Observable, type Observer, type Operator, Subject, Subscriber, type Subscription } from 'rxjs';
import {
  type AdmittingArguments,
  argumentReader,
  type Arguments,
  unknownArguments,
} from '../arguments/argument-class.js';
import { getAliases } from '#schema';
import { BUILT_IN_TOOLS } from '../built-in-tools.js';
import { createCheckedHandler } from '../declaration/checked-handler.js';
import { compileGivenForms } from '../arguments/argument.decorators.js';
import { isClassReader } from '../declaration/class-reader.js';
import { checkDefinition, completeInput, ToolDeclarationError } from '../declaration/tool-declaration.js';
import { toolDeclarations, type ToolRegistration } from '../declaration/tool.decorator.js';
import { vendorWarning } from '../declaration/vendor-rules.js';
import { annotationsByTier, type ToolDefinition, type ToolHandler } from '../tool.js';

export interface RegisteredTool {
  readonly definition: ToolDefinition;
  readonly handler: ToolHandler;
  /** True for Parley's own tools, false for an override of one. */
  readonly builtIn: boolean;
  /** How the arguments of an application's tool are read, where not by the JSON Schema of its definition. */
  readonly input?: ToolRegistration['input'];
  /** @internal */
  readonly declared?: ToolRegistration['declared'];
  /**
   * For a built-in: refuses undeclared arguments. An application's tool has its own schema for that.
   * @throws Refused `invalid_argument`
   */
  readonly refuseUnknown?: (args: unknown) => void;
}

/** The tools that exist. The gates decide who may call them, once for listing and calling. */
export abstract class ToolRegistry {
  /** Changes with every registration: a cache key for the catalogue. */
  abstract get version(): number;
  /** Emits after every change. A subscriber that throws is logged; the others still receive the change. */
  abstract readonly changes: Observable<void>;

  /**
   * Registers Parley's own tools.
   * @throws ToolDeclarationError when called again or for a tool that is not built in
   * @internal
   */
  abstract installBuiltIns(tools: readonly ToolRegistration[]): void;

  /**
   * Adds the tools that an application declares at its start.
   * @throws ToolDeclarationError as `register`, and when two declarations have one name
   * @internal
   */
  abstract registerDeclared(tools: Iterable<ToolRegistration>): void;

  /**
   * Adds an application's tool, or replaces the one that it registered under this name.
   * @returns a function that removes the tool, unless it was replaced since; an overridden built-in then returns
   * @throws ToolDeclarationError for a built-in's name without `override`, and for an invalid definition
   */
  abstract register(tool: ToolRegistration): () => void;

  /** Removes every tool of the application: overridden built-ins return. For tests, as `PromptRegistry.reset`. */
  abstract reset(): void;

  /** Returns the tool of that name. */
  abstract get(name: string): RegisteredTool | undefined;

  /** Catalogue order: built-in positions first, then the others by name, so that replicas agree. */
  abstract all(): readonly RegisteredTool[];
}

/** The properties of a built-in that an override may not change. */
type ToolGates = Pick<ToolDefinition, 'permission' | 'category' | 'clientSafe'>;

/** Whether Parley itself has a tool of that name, replaced or not. */
export const isBuiltInName = (name: string): boolean => BUILT_IN_GATES.has(name);

/** Built-in names in catalogue order with their gates. */
const BUILT_IN_GATES: ReadonlyMap<string, ToolGates> = new Map(
  BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype)).map(
    ({ definition: { name, permission, category, clientSafe } }): [string, ToolGates] => [
      name,
      { permission, category, clientSafe },
    ],
  ),
);

/** The registry of one process. */
@Injectable()
export class ToolCatalogue extends ToolRegistry {
  private readonly logger = new Logger('ToolRegistry');
  private readonly builtIns = new Map<string, RegisteredTool>();
  private readonly added = new Map<string, RegisteredTool>();
  private readonly changed = new RegistryChanges('tools');
  private changeCount = 0;
  private listing: readonly RegisteredTool[] = [];
  private installed = false;

  readonly changes: Observable<void> = this.changed.changes;

  get version(): number {
    return this.changeCount;
  }

  installBuiltIns(tools: readonly ToolRegistration[]): void {
    if (this.installed) throw new ToolDeclarationError('built-in', 'the built-in tools are already in place');
    for (const tool of tools) {
      const { definition, declared } = tool;
      checkDefinition(definition);
      if (!BUILT_IN_GATES.has(definition.name))
        throw new ToolDeclarationError(definition.name, 'not a built-in');
      if (this.builtIns.has(definition.name))
        throw new ToolDeclarationError(definition.name, 'declared twice');
      const refuseUnknown = unknownArguments(tool);
      const handler = createReadingHandler(tool);
      this.builtIns.set(definition.name, {
        definition,
        handler,
        builtIn: true,
        refuseUnknown,
        ...(declared && { declared }),
      });
    }
    this.installed = true;
    this.announce();
  }

  registerDeclared(tools: Iterable<ToolRegistration>): void {
    for (const tool of tools) {
      const { name } = tool.definition;
      const other = this.added.get(name);
      if (other) {
        const classes = [other, tool].map(({ declared }) => declared?.type.name ?? 'code');
        throw new ToolDeclarationError(name, `is already registered: by ${classes.join(' and by ')}`);
      }
      this.register(tool);
    }
  }

  register(registration: ToolRegistration): () => void {
    const { definition, override = false } = registration;
    checkDefinition(definition);
    const { name } = definition;
    const gates = BUILT_IN_GATES.get(name);
    if (gates && !override)
      throw new ToolDeclarationError(name, 'is the name of a built-in; declare override: true to replace it');
    if (definition.needs?.includes('methods') && name !== 'call_method')
      throw new ToolDeclarationError(name, 'only call_method may need methods');
    const { input, declared } = registration;
    const tool: RegisteredTool = {
      definition: Object.freeze({
        ...definition,
        ...gates,
        annotations: annotationsByTier((gates ?? definition).permission, definition.annotations),
        inputSchema: completeInput(
          input && isClassReader(input) ? input.jsonSchemaWithDefaults() : definition.inputSchema,
        ),
      }),
      handler: createCheckedHandler(registration),
      builtIn: false,
      ...(input && { input }),
      ...(declared && { declared }),
    };
    const refused = vendorWarning(tool.definition);
    if (refused !== null) this.logger.warn(`tool '${name}': ${refused}`);
    this.added.set(name, tool);
    this.announce();
    return () => {
      if (this.added.get(name) !== tool) return;
      this.added.delete(name);
      this.announce();
    };
  }

  reset(): void {
    this.added.clear();
    this.announce();
  }

  get(name: string): RegisteredTool | undefined {
    return this.added.get(name) ?? this.builtIns.get(name);
  }

  all(): readonly RegisteredTool[] {
    return this.listing;
  }

  private announce(): void {
    const own = [...BUILT_IN_GATES.keys()];
    const others = [...this.added.keys()].filter((name) => !BUILT_IN_GATES.has(name)).sort();
    this.listing = [...own, ...others].flatMap((name) => this.get(name) ?? []);
    this.changeCount += 1;
    this.changed.announce();
  }
}

/**
 * The handler of a built-in tool behind the checks of its argument class, which are compiled here once.
 * @throws ToolDeclarationError for arguments that are not declared as a class
 */
export function createReadingHandler({ definition, input, handler }: ToolRegistration): ToolHandler {
  if (!input || !isClassReader(input))
    throw new ToolDeclarationError(definition.name, 'the arguments of a built-in tool are a class');
  const toForms = compileGivenForms(definition.inputSchema);
  const readClass = argumentReader(input.type);
  const read = (args: unknown) => readClass(toForms(args));
  const { admission } = input.type as AdmittingArguments;
  const names = ['class_name', ...getAliases(input.type, 'class_name')];
  if (!admission) return (args, call) => handler(read(args) as Arguments, call);
  return async (args, call) => {
    let given: Arguments;
    try {
      given = read(args) as Arguments;
    } catch (error) {
      const written = (args ?? {}) as Arguments;
      const className = names.map((name) => written[name]).find((value) => value !== undefined);
      if (typeof className === 'string' && className !== '') await admission(className, call);
      throw error;
    }
    return handler(given, call);
  };
}

/**
 * An Observable whose subscribers may throw: an error is logged, where RxJS would report it as an uncaught exception,
 * which ends the process. Piped observables behave alike.
 */
class ContainedObservable<T> extends Observable<T> {
  constructor(
    source: Observable<T>,
    private readonly report: (error: unknown) => void,
  ) {
    super((subscriber) => source.subscribe(subscriber));
  }

  override lift<R>(operator?: Operator<T, R>): Observable<R> {
    return new ContainedObservable(super.lift(operator as Operator<T, R>), this.report);
  }

  override subscribe(observerOrNext?: Partial<Observer<T>> | ((value: T) => void) | null): Subscription {
    // An operator's subscriber, which must be torn down with its own subscriber.
    if (observerOrNext instanceof Subscriber) return super.subscribe(observerOrNext);
    const given: Partial<Observer<T>> =
      typeof observerOrNext === 'function' ? { next: observerOrNext } : (observerOrNext ?? {});
    return super.subscribe({
      next: (value) => this.notifySafely(() => given.next?.(value)),
      error: (error) => this.notifySafely(() => (given.error ? given.error(error) : this.report(error))),
      complete: () => this.notifySafely(() => given.complete?.()),
    });
  }

  private notifySafely(notify: () => void): void {
    try {
      notify();
    } catch (error) {
      this.report(error);
    }
  }
}

/**
 * Notifies subscribers of changes of a registry. A subscriber that throws is logged, and the others still receive the
 * change.
 */
export class RegistryChanges {
  private readonly subject = new Subject<void>();

  /** Emits after every change. */
  readonly changes: Observable<void>;

  /** @param registry name for the log: `tools`, `prompts`, `resources` */
  constructor(registry: string) {
    const logger = new Logger(RegistryChanges.name);
    this.changes = new ContainedObservable(this.subject, (error) =>
      logger.error(`a subscriber to changes of the ${registry} failed: ${String(error)}`),
    );
  }

  announce(): void {
    this.subject.next();
  }
}
