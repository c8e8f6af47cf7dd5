import type { InjectionToken, Provider } from '@nestjs/common';
import { RateLimiters } from '#core';
import { AuditSink } from '#audit';
import { Authenticator } from '#auth';
import { SharedState } from '#state';
import { provideApprover } from '#approvals';
import { type AgentChooser, chosenBy, listAdmitted } from './agent-choice.js';
import { ConfigError, type ConfigIssue } from '#config';
import {
  PrincipalDirectory,
  ReadStore,
  RecordReader,
  RecordSearcher,
  RecordWriter,
  SchemaCatalogue,
  SearchStore,
  WriteStore,
} from '#data';
import { Approver } from '#dispatcher';
import { TaskQueue } from '#tasks';
import { checkedReads, checkedSearches } from './checked-stores.js';

/**
 * Token of the function that returns the agent of each request. While it is bound, no rule of `auth` applies. Default:
 * none.
 */
export const AGENT_FACTORY = Symbol('parley:agent-factory');

interface Overridable {
  readonly token: InjectionToken;
  readonly name: string;
  /** The required methods; empty: the value itself is a function. */
  readonly methods: readonly string[];
}

/** Ports that an application may rebind in `providers`, or a test with `overrideProvider`. */
const OVERRIDABLE: readonly Overridable[] = [
  overridable(Authenticator, 'authenticate', 'challengeTo', 'scopeChallenge', 'stepsAbove'),
  { token: AGENT_FACTORY, name: 'AGENT_FACTORY', methods: [] },
  overridable(AuditSink, 'admit', 'record', 'recordApproval', 'recordEvent'),
  overridable(Approver, 'review'),
  overridable(RateLimiters, 'limiter'),
  overridable(RecordReader, 'run', 'find', 'count', 'aggregate', 'related', 'explain'),
  overridable(RecordWriter, 'run', 'create', 'update', 'delete'),
  overridable(RecordSearcher, 'run', 'text', 'facets', 'nearest'),
  overridable(SchemaCatalogue, 'snapshot', 'listIndexes', 'invalidate'),
  overridable(PrincipalDirectory, 'ownerOfSession', 'rolesOfUser', 'rolesOfRole', 'forgetRoles'),
  overridable(TaskQueue, 'push', 'work', 'isUp', 'countWaiting', 'drain', 'close'),
  overridable(SharedState, 'isUp', 'close'),
];

function overridable<Port>(
  token: abstract new (...args: never[]) => Port,
  ...methods: (keyof Port & string)[]
): Overridable {
  return { token, name: token.name, methods };
}

export const OVERRIDABLE_TOKENS: readonly InjectionToken[] = OVERRIDABLE.map(({ token }) => token);

/** In the application each is null until it is bound: the options then decide. */
export const UNBOUND: readonly Provider[] = OVERRIDABLE_TOKENS.map((provide) => ({
  provide,
  useValue: null,
}));

/** Null means only that nothing is bound: a factory that returns nothing must not select the default. */
function findBindingError({ name, methods }: Overridable, value: unknown): ConfigIssue[] {
  const error = (message: string) => [{ path: name, message: `is bound to ${message}` }];
  if (methods.length === 0) return typeof value === 'function' ? [] : error('something that is no function');
  if (typeof value !== 'object' || value === null) return error('something that is no object');
  const missing = methods.filter((method) => typeof Reflect.get(value, method) !== 'function');
  return missing.length === 0 ? [] : error(`an object without ${missing.join(', ')}`);
}

const HOOKS: ReadonlySet<PropertyKey> = new Set([
  'onModuleInit',
  'onApplicationBootstrap',
  'onModuleDestroy',
  'beforeApplicationShutdown',
  'onApplicationShutdown',
]);

/**
 * The application runs the lifecycle hooks of its own providers. Without hooks no other container runs them a second
 * time.
 */
function withoutHooks<T extends object>(bound: T, instead: Partial<T> = {}): T {
  return new Proxy(bound, {
    get: (target, key) => {
      if (HOOKS.has(key)) return undefined;
      if (Object.hasOwn(instead, key)) return Reflect.get(instead, key) as unknown;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** The bound values, by token. */
export class BoundProviders {
  private readonly bound: ReadonlyMap<InjectionToken, object>;

  /** @param values in the order of `OVERRIDABLE_TOKENS`. @throws ConfigError listing every binding with a wrong type */
  constructor(values: readonly unknown[]) {
    const given = OVERRIDABLE.map((one, index) => ({ one, value: values[index] })).filter(
      ({ value }) => value !== null,
    );
    const errors = given.flatMap(({ one, value }) => findBindingError(one, value));
    this.bound = new Map(given.map(({ one, value }) => [one.token, value as object]));
    if (this.bound.has(Authenticator) && this.bound.has(AGENT_FACTORY))
      errors.push({ path: 'AGENT_FACTORY', message: 'is bound beside Authenticator: one of them must go' });
    if (errors.length > 0) throw new ConfigError('providers', errors);
  }

  private get<T>(token: abstract new (...args: never[]) => T): T | null {
    return (this.bound.get(token) as T | undefined) ?? null;
  }

  /** Whether the application itself authenticates callers. */
  get admits(): boolean {
    return this.bound.has(Authenticator) || this.bound.has(AGENT_FACTORY);
  }

  /** Null: the options decide. The application closes it. */
  get sharedState(): SharedState | null {
    return this.get(SharedState);
  }

  /** Null: the options decide. The application closes it. */
  get taskQueue(): TaskQueue | null {
    const queue = this.get(TaskQueue);
    return queue && withoutHooks(queue, { close: () => Promise.resolve() });
  }

  /** The shared state, with the application's counters. */
  stateOver(shared: SharedState): SharedState {
    const limiters = this.get(RateLimiters);
    if (!limiters && !this.sharedState) return shared;
    return withoutHooks(shared, limiters ? { limiters } : {});
  }

  /** Overrides of the instance: each replaces its provider, behind the mandatory checks. */
  providers(): Provider[] {
    return [...this.bound].flatMap(([token, value]): Provider[] => {
      switch (token) {
        case RateLimiters:
        case SharedState:
        case TaskQueue:
          return [];
        case AGENT_FACTORY:
          return [chosenBy(value as AgentChooser)];
        case Authenticator:
          return [listAdmitted(value as Authenticator)];
        case Approver:
          return [provideApprover(value as Approver)];
        case RecordReader:
          return [{ provide: ReadStore, useValue: checkedReads(value as RecordReader) }];
        case RecordSearcher:
          return [{ provide: SearchStore, useValue: checkedSearches(value as RecordSearcher) }];
        case RecordWriter:
          return [{ provide: WriteStore, useValue: withoutHooks(value) }];
        default:
          return [{ provide: token, useValue: withoutHooks(value) }];
      }
    });
  }
}
