import type { InjectionToken, Provider } from '@nestjs/common';
import { RateLimiters } from '#agent';
import { AuditSink } from '#audit';
import { Authenticator, RecordedAuthenticator } from '#auth';
import type { SharedState } from '#cluster';
import { type AgentChooser, ChosenAgents, Editions } from '#composition';
import { PrincipalDirectory, RecordReader, RecordSearcher, RecordWriter, SchemaCatalogue } from '#data';
import { Approver } from '#dispatcher';

/**
 * Token of the function that answers per request as whom it runs. While it is bound, no rule of `auth` is asked.
 * Default: none.
 */
export const AGENT_FACTORY = Symbol('parley:agent-factory');

/** Ports that an application may bind anew in `providers`, or a test with `overrideProvider`. */
const SEAMS = [
  Authenticator,
  AuditSink,
  Approver,
  RateLimiters,
  RecordReader,
  RecordWriter,
  RecordSearcher,
  SchemaCatalogue,
  PrincipalDirectory,
] as const;

/** In the application each is null until it is bound: what stands behind it then is what the options say. */
export const UNBOUND: readonly Provider[] = [...SEAMS, AGENT_FACTORY].map((provide) => ({
  provide,
  useValue: null,
}));

export const SEAM_TOKENS: readonly InjectionToken[] = [...SEAMS, AGENT_FACTORY];

const HOOKS: ReadonlySet<PropertyKey> = new Set([
  'onModuleInit',
  'onApplicationBootstrap',
  'onModuleDestroy',
  'beforeApplicationShutdown',
  'onApplicationShutdown',
]);

/** The application begins and ends what it binds; without its hooks nobody else does it a second time. */
function withoutHooks<T extends object>(bound: T): T {
  return new Proxy(bound, {
    get: (target, key) => {
      if (HOOKS.has(key)) return undefined;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** What was bound, by token; null: nothing. */
export class BoundSeams {
  private readonly bound: ReadonlyMap<InjectionToken, object>;

  /** @param values in the order of `SEAM_TOKENS`. @throws TypeError */
  constructor(values: readonly unknown[]) {
    this.bound = new Map(
      SEAM_TOKENS.flatMap((token, index) => {
        const value = values[index];
        return (typeof value === 'object' && value !== null) || typeof value === 'function'
          ? [[token, value] as const]
          : [];
      }),
    );
    if (this.bound.has(Authenticator) && this.bound.has(AGENT_FACTORY))
      throw new TypeError('both Authenticator and AGENT_FACTORY are bound: one of them must go');
  }

  /** Whether the application itself says who is calling. */
  get admits(): boolean {
    return this.bound.has(Authenticator) || this.bound.has(AGENT_FACTORY);
  }

  /** The shared state, counting where the application wants it to be counted. */
  stateOver(shared: SharedState): SharedState {
    const limiters = this.bound.get(RateLimiters);
    if (!limiters) return shared;
    return new Proxy(shared, {
      get: (target, key) => {
        if (key === 'limiters') return limiters;
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  }

  /** For the composition: each in the place of what is bound there. */
  providers(): Provider[] {
    return [...this.bound].flatMap(([token, value]): Provider[] => {
      if (token === RateLimiters) return [];
      if (token === AGENT_FACTORY)
        return [recorded((editions) => new ChosenAgents(editions, value as AgentChooser))];
      if (token === Authenticator) return [recorded(() => value as Authenticator)];
      return [{ provide: token, useValue: withoutHooks(value) }];
    });
  }
}

/** Who is not let in is written down, whoever says so. */
function recorded(of: (editions: Editions) => Authenticator): Provider {
  return {
    provide: Authenticator,
    useFactory: (editions: Editions, audit: AuditSink) => new RecordedAuthenticator(of(editions), audit),
    inject: [Editions, AuditSink],
  };
}
