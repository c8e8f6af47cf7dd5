import { Injectable } from '@nestjs/common';
import { type Agent, Refused } from '#core';
import {
  type AgentScope,
  allTextFields,
  type ClassOperation,
  isTenantRefusal,
  type ReadOperation,
  tenantBinding,
} from '#policy';
import type { GovernedClass } from '../governed-access.js';
import { SearchStore } from '../record-search.js';
import { GovernedRecordsSource } from './governed-sources.js';
import { admitChangedClass, admitDeletedClass } from './parley-class-writes.js';
import { facetsRefusal, filtersOfFacets } from './parley-search.js';
import { admitWrite } from './write-rules.js';
import { planRefusal } from './query-plan.js';
import { type ClassGate, enterClass } from './governed-call.js';
import { showClass } from './shown-rows.js';
import { admitVectorSearch } from './vector-search.js';

/** A way to use a class. Each has the gates of the calls that do so. */
export type ClassUse =
  | 'describe'
  | ReadOperation
  | 'explain'
  | 'words'
  | 'facets'
  | 'vectors'
  | Extract<ClassOperation, 'create' | 'update' | 'delete'>
  | 'createClass'
  | 'deleteClass';

/** A name that no class has: whether an agent may make classes at all. */
const SOME_CLASS = 'SomeNewClass';

/** Which classes one agent may use, and how. The gates of the calls answer; nothing here is a rule. */
export class ClassUses {
  private readonly known = new Map<ClassUse, readonly string[]>();
  private shown: readonly GovernedClass[] | null = null;

  constructor(
    private readonly call: ClassGate,
    /** Whether the database can search. */
    private readonly canSearch: boolean,
  ) {}

  /** Every class that listings show to the agent, sorted by name. */
  get classes(): readonly GovernedClass[] {
    const { scope } = this.call;
    return (this.shown ??= scope.schemas
      .classNames()
      .filter((name) => scope.isListed(name))
      .flatMap((name) => showClass(scope.access(name), this.call) ?? []));
  }

  /** Names of the listed classes that no gate refuses for this use, sorted. For `createClass`: some name, or none. */
  for(use: ClassUse): readonly string[] {
    let names = this.known.get(use);
    if (!names) this.known.set(use, (names = this.listFound(use)));
    return names;
  }

  /** Whether the agent may use a class that listings leave out: a list of names would then not be complete. */
  get hasOthers(): boolean {
    const { agent, scope } = this.call;
    const { hasVisibleClasses } = scope.policy;
    return scope.schemas.classNames().some((name) => {
      if (scope.isListed(name)) return hasVisibleClasses && !scope.classPolicy(name).visible;
      return typeof scope.admit(agent, name) === 'string' && scope.rights.gate(name, 'describe') === null;
    });
  }

  private listFound(use: ClassUse): readonly string[] {
    if (!this.canSearch && (use === 'words' || use === 'facets' || use === 'vectors')) return [];
    if (use === 'createClass') {
      const { policy, schemas } = this.call.scope;
      const absent = [...policy.classes.keys(), SOME_CLASS].filter((name) => !schemas.get(name));
      return absent.filter((name) => passes(() => admitChangedClass(this.call, name))).slice(0, 1);
    }
    return this.classes.flatMap((known) => (this.permits(use, known) ? [known.className] : []));
  }

  private permits(use: Exclude<ClassUse, 'createClass'>, { className, reads }: GovernedClass): boolean {
    const { call } = this;
    const { agent } = call;
    switch (use) {
      case 'describe':
        return true;
      case 'find':
      case 'count':
      case 'get':
        return reads.has(use);
      case 'explain':
        return reads.has('find') && planRefusal(agent) === null;
      case 'words':
        return reads.has('find') && passes(() => allTextFields(enterClass(call, className, 'find')));
      case 'facets':
        return reads.has('find') && this.permitsFacets(className);
      case 'vectors':
        return reads.has('find') && passes(() => admitVectorSearch(call, className));
      case 'create':
      case 'update':
      case 'delete':
        return this.isBound(className) && passes(() => admitWrite(call, className, use));
      case 'deleteClass':
        return passes(() => admitDeletedClass(call, className));
    }
  }

  /** A filter that a function computes is not known here, and counts as none. */
  private permitsFacets(className: string): boolean {
    const { agent, scope } = this.call;
    if (facetsRefusal(agent)) return false;
    const tenant = tenantBinding(agent, scope.classPolicy(className));
    if (isTenantRefusal(tenant)) return false;
    const fixed = scope.findFixedAgentFilter(className) ?? null;
    return passes(() => {
      if (filtersOfFacets(this.call, className, fixed, tenant).length > 0) throw new NotPassed();
    });
  }

  private isBound(className: string): boolean {
    const { agent, scope } = this.call;
    return !isTenantRefusal(tenantBinding(agent, scope.classPolicy(className)));
  }
}

class NotPassed extends Error {}

function passes(gates: () => unknown): boolean {
  try {
    gates();
    return true;
  } catch (error) {
    if (error instanceof Refused || error instanceof NotPassed) return false;
    throw error;
  }
}

/** Most answers that are kept for one scope: one for each combination of tenants that its agents have or lack. */
const MAX_KEPT = 64;

interface KeptUses {
  /** The classes whose rows depend on the tenant of the agent. */
  readonly scoped: readonly string[];
  readonly uses: Map<string, ClassUses>;
}

/** Lists which classes agents may use, without reading a row. */
@Injectable()
export class ClassUsesSource {
  /** Scopes of master identities live as long as a schema snapshot; those of a user or role serve one request. */
  private readonly kept = new WeakMap<AgentScope, KeptUses>();

  constructor(
    private readonly records: GovernedRecordsSource,
    private readonly searcher: SearchStore,
  ) {}

  /** At once where nothing has to be read first. @throws Refused when the database does not answer */
  of(agent: Agent): ClassUses | Promise<ClassUses> {
    const scope = this.records.findScope(agent);
    const canSearch = this.searcher.canSearch();
    if (scope instanceof Promise || canSearch instanceof Promise)
      return Promise.all([scope, canSearch]).then(([known, can]) => this.uses(agent, known, can));
    return this.uses(agent, scope, canSearch);
  }

  /** Agents of one definition share a scope, and may differ in their tenants: every answer is kept with those. */
  private uses(agent: Agent, scope: AgentScope, canSearch: boolean | null): ClassUses {
    let kept = this.kept.get(scope);
    if (!kept) {
      const scoped = scope.schemas.classNames().filter((name) => scope.classPolicy(name).tenantScope);
      this.kept.set(scope, (kept = { scoped, uses: new Map() }));
    }
    const tenants = kept.scoped.map((name) => describeBinding(tenantBinding(agent, scope.classPolicy(name))));
    const key = `${canSearch ?? true} ${tenants.join('')}`;
    let uses = kept.uses.get(key);
    if (!uses) {
      if (kept.uses.size >= MAX_KEPT) kept.uses.clear();
      uses = new ClassUses({ agent, scope, trace: undefined }, canSearch ?? true);
      kept.uses.set(key, uses);
    }
    return uses;
  }
}

/** Whether a class is refused, open, or limited to one tenant; which tenant makes no difference. */
function describeBinding(binding: ReturnType<typeof tenantBinding>): string {
  if (binding === null) return 'o';
  return isTenantRefusal(binding) ? 'r' : 't';
}
