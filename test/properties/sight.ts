import { POOL } from './cell-values.js';
import { CALLER, type ClassName, columnOf, OWNER_COLUMN, rowId, TENANT_COLUMN } from './vocabulary.js';
import {
  type AgentLimits,
  type ClassRules,
  type MaskSpec,
  type OwnClass,
  type RowSpec,
  type Rule,
  tenantsOf,
  type World,
} from './world.js';

export type Operation = 'find' | 'count' | 'get';

/**
 * How much of one value an agent may come to know by any road. `equality`: which rows of the column hold the same, missing
 * values included. `rest`: all of an object but one member. `ending`: the last few characters.
 */
export type Sight = 'all' | 'rest' | 'presence' | 'equality' | 'ending' | 'nothing';

/** The column that filters and default filters limit rows by; kept below this. */
export const LIMITED_BY: Readonly<Record<OwnClass, string>> = {
  Orchard: 'ORC_RANK',
  Farmer: 'frm_age',
  Crate: 'crt_weight',
  Ledger: 'LgrSum',
};
export const FILTER_LIMIT = 3;
/** The row that the filter for every class leaves out. */
export const LEFT_OUT = (className: ClassName) => rowId(className, 4);

/**
 * What an agent may see of a world, computed the plain way from what was declared, sharing no code with what decides. Where several
 * roads differ (find, count and get have permissions of their own) the widest counts.
 */
export class AgentSight {
  constructor(private readonly world: World) {}

  private get levels(): readonly AgentLimits[] {
    const { agent } = this.world;
    return agent.child ? [agent, agent.child] : [agent];
  }

  get isMaster(): boolean {
    return this.world.agent.posture === 'master';
  }

  private get isUser(): boolean {
    return ['session', 'client', 'user'].includes(this.world.agent.posture);
  }

  /** Hidden, or outside a class filter: no listing, schema or row may name it. */
  isWithheld(className: ClassName): boolean {
    return this.world.classes[className].hidden !== 'no' || !this.passesFilters(className);
  }

  private passesFilters(className: ClassName): boolean {
    return this.levels.every(({ classes }) => {
      if (!classes) return true;
      return classes.only ? classes.only.includes(className) : !classes.except?.includes(className);
    });
  }

  /** Whether the class may be named at all. */
  isReachable(className: ClassName): boolean {
    const { hidden } = this.world.classes[className];
    return (hidden === 'no' || (hidden === 'exceptMaster' && this.isMaster)) && this.passesFilters(className);
  }

  isTenantBlind(className: ClassName): boolean {
    return this.isBound(className) && this.world.agent.tenantId === null;
  }

  /** Sub-agents are readonly here, so their own tier never bypasses; that of an agent above may. */
  private isBound(className: ClassName): boolean {
    if (this.isApart(className)) return true;
    const { tenant } = this.world.classes[className];
    if (!tenant) return false;
    return !(tenant.bypass && this.world.agent.permissions === 'admin' && !this.world.agent.child);
  }

  /** Whether each tenant has its rows in a database of its own, past which nobody reaches. */
  private isApart(className: ClassName): boolean {
    return this.world.spread?.[className] === 'apart';
  }

  /** Whether one query can read both classes: it reads one database. */
  areTogether(one: ClassName, other: ClassName): boolean {
    const { spread } = this.world;
    return !spread || spread[one] === spread[other];
  }

  /** Of another tenant: named by id it is refused as one that is not there. */
  isForeign(className: ClassName, row: RowSpec): boolean {
    if (!this.isBound(className)) return false;
    return this.tenantOf(className, row) !== this.world.agent.tenantId;
  }

  /** Leaving tenants aside. */
  exists(
    className: ClassName,
    row: RowSpec,
    index: number,
    operations: readonly Operation[] = ['find', 'count', 'get'],
  ): boolean {
    if (!this.isReachable(className) || this.isTenantBlind(className)) return false;
    if (className !== '_User' && !this.passesRowFilters(className, row, index)) return false;
    if (className === '_User' && index === 4 && this.levels.some((level) => level.filteredByDefault))
      return false;
    if (this.isMaster) return true;
    if (!this.mayReadAcl(row)) return false;
    const rules = this.world.classes[className];
    return operations.some((operation) => this.grants(rules[operation], className, row));
  }

  private tenantOf(className: ClassName, row: RowSpec): string | null {
    const chosen = row.values[TENANT_COLUMN[className]] ?? null;
    return chosen === null ? null : (tenantsOf(this.world)[chosen % 2] ?? null);
  }

  sees(className: ClassName, row: RowSpec, index: number): boolean {
    return this.exists(className, row, index) && !this.isForeign(className, row);
  }

  /** Whether the agent could write the row, also where it may not read it: then it comes to know that there is one. */
  mayWrite(className: OwnClass, row: RowSpec, index: number): boolean {
    if (!this.isReachable(className) || this.isForeign(className, row)) return false;
    if (!this.passesRowFilters(className, row, index)) return false;
    return this.isMaster || row.acl === 'none' || (row.acl === 'caller' && this.isUser);
  }

  /** Whether permissions leave the agent anything of the class in that way at all. */
  permits(className: ClassName, operation: Operation): boolean {
    if (!this.isReachable(className) || this.isTenantBlind(className)) return false;
    const rule = this.world.classes[className][operation];
    if (this.isMaster || rule === 'open' || rule === 'role') return true;
    return rule !== 'nobody' && rule !== 'unset' && this.isUser;
  }

  /** Numbers of the rows that an operation reaches, in the order in which they are stored. */
  rowsFor(className: ClassName, operation: Operation, canonical: boolean): number[] {
    return this.world.rows[className].flatMap((row, index) => {
      const there = this.exists(className, row, index, [operation]) && !this.isForeign(className, row);
      return there && (!canonical || this.isInDefaultView(className, row)) ? [index] : [];
    });
  }

  private isInDefaultView(className: ClassName, row: RowSpec): boolean {
    if (className === '_User' || !this.world.classes[className].canonical) return true;
    const value = row.values[LIMITED_BY[className]] ?? null;
    return value !== null && value + 1 <= FILTER_LIMIT;
  }

  /** What is done with a column's values for this agent; null: nothing. Sub-agents are readonly here. */
  maskOf(className: ClassName, field: string): MaskSpec | null {
    const mask = this.world.classes[className].masks[field] ?? null;
    const { permissions, child } = this.world.agent;
    return mask?.openToAdmin && permissions === 'admin' && !child ? null : mask;
  }

  /** Whether queries may be about the column: what only some rows show is not. */
  mayAsk(className: ClassName, field: string): boolean {
    if (this.maskOf(className, field)) return false;
    const { fields, hiddenFrom } = this.world.classes[className];
    if (fields && !fields.includes(field)) return false;
    const target = columnOf(className, field)?.target;
    if (target && this.isWithheld(target)) return false;
    if (this.isMaster || !hiddenFrom) return true;
    const general = this.generalLists(className);
    if (general.length > 0) return general.some((list) => !list.includes(field));
    return !(this.isUser && hiddenFrom.owner?.includes(field));
  }

  private passesRowFilters(className: OwnClass, row: RowSpec, index: number): boolean {
    const value = row.values[LIMITED_BY[className]] ?? null;
    return this.levels.every((level) => {
      if (level.filteredByDefault && index === 4) return false;
      return !level.filtered.includes(className) || (value !== null && value + 1 <= FILTER_LIMIT);
    });
  }

  private mayReadAcl({ acl }: RowSpec): boolean {
    if (acl === 'none' || acl === 'public') return true;
    if (acl === 'caller') return this.isUser;
    return acl === 'role';
  }

  private grants(rule: Rule, className: ClassName, row: RowSpec): boolean {
    if (rule === 'nobody' || rule === 'unset') return false;
    if (rule === 'authenticated') return this.isUser;
    if (rule === 'owner') return className !== '_User' && this.isUser && isOwned(className, row);
    return true;
  }

  /** Whether some row may show the column. */
  mayName(className: ClassName, field: string): boolean {
    const { fields, hiddenFrom } = this.world.classes[className];
    if (fields && !fields.includes(field) && field !== 'createdAt') return false;
    const mask = this.maskOf(className, field);
    if (mask?.form === 'drop' && mask.member === null) return false;
    if (this.isMaster || !hiddenFrom || (className === '_User' && this.isUser)) return true;
    const general = this.generalLists(className);
    const exceptions = hiddenFrom.owner ? [hiddenFrom.owner] : [];
    if (general.length === 0) return true;
    return [...general, ...(this.isUser ? exceptions : [])].some((list) => !list.includes(field));
  }

  /**
   * The default view names its column outside the allowlist too, so that a caller can write the filter itself, and a search the
   * column that it compares with; not one that is masked or protected.
   */
  isToldByPolicy(className: ClassName, field: string): boolean {
    if (className === '_User') return false;
    const { canonical, searchable, fields, masks, hiddenFrom } = this.world.classes[className];
    const isSearched = searchable !== null && columnOf(className, field)?.kind === 'vector';
    if (!isSearched && !(canonical && field === LIMITED_BY[className])) return false;
    const guarded = Object.values(hiddenFrom ?? {}).some((list) => list?.includes(field) ?? false);
    return fields !== null && !masks[field] && !guarded;
  }

  private generalLists(className: ClassName): (readonly string[])[] {
    const { hiddenFrom } = this.world.classes[className];
    const lists = [
      // Of users the server itself always names one column, and so every other one counts as shown by that list.
      className === '_User' ? [...(hiddenFrom?.everyone ?? []), 'email'] : hiddenFrom?.everyone,
      hiddenFrom?.role,
      this.isUser ? hiddenFrom?.authenticated : undefined,
    ];
    return lists.filter((list): list is readonly string[] => list !== null && list !== undefined);
  }

  private isProtected(className: ClassName, row: RowSpec, index: number, field: string): boolean {
    const { hiddenFrom } = this.world.classes[className];
    if (this.isMaster || !hiddenFrom) return false;
    if (className === '_User' && index === 0 && this.isUser) return false;
    const owns = className !== '_User' && this.isUser && isOwned(className, row);
    const lists = [...this.generalLists(className), ...(owns && hiddenFrom.owner ? [hiddenFrom.owner] : [])];
    return lists.length > 0 && lists.every((list) => list.includes(field));
  }

  of(className: ClassName, row: RowSpec, index: number, field: string): Sight {
    if (!this.sees(className, row, index)) return 'nothing';
    const { fields, searchable } = this.world.classes[className];
    const column = columnOf(className, field);
    // A search compares with the vectors of rows that the agent reads, whether it shows them or not.
    if (fields && !fields.includes(field) && field !== 'createdAt')
      return searchable && column?.kind === 'vector' ? 'all' : 'nothing';
    if (this.isProtected(className, row, index, field)) return 'nothing';
    const mask = this.maskOf(className, field);
    if (mask?.member) return 'rest';
    if (mask?.form === 'ending') return 'ending';
    if (mask) {
      const isPseudonym = mask.form === 'hash' && column?.kind !== 'relation';
      return isPseudonym && !(column?.target && this.isWithheld(column.target)) ? 'equality' : 'nothing';
    }
    if (column?.target && column.kind !== 'relation' && !this.isReachable(column.target)) return 'presence';
    return 'all';
  }

  /** What decides about rows stays as it is in both worlds. */
  decides(className: ClassName, field: string): boolean {
    if (className === '_User') return false;
    const rules: ClassRules = this.world.classes[className];
    if (field === TENANT_COLUMN[className]) return rules.tenant !== null || this.isApart(className);
    const byOwner = [rules.find, rules.count, rules.get].includes('owner') || rules.hiddenFrom?.owner;
    if (field === OWNER_COLUMN[className]) return Boolean(byOwner);
    const limited = rules.canonical || this.levels.some(({ filtered }) => filtered.includes(className));
    return limited && field === LIMITED_BY[className];
  }
}

function isOwned(className: OwnClass, row: RowSpec): boolean {
  const chosen = row.values[OWNER_COLUMN[className]] ?? null;
  return chosen !== null && rowId('_User', chosen % POOL) === CALLER;
}
