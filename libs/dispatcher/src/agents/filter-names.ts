import { Injectable, Logger } from '@nestjs/common';
import type { AgentDefinition } from '#core';
import { SchemaCatalogue, StoreError } from '#data';
import { type BindingIssue, bindPolicy, type Policy, type UnknownName, unknownAgentNames } from '#policy';
import { ToolRegistry } from '#tools';

/** Finds names in the limits of agents that match no registered tool and no class of the database. */
@Injectable()
export class FilterNames {
  private readonly logger = new Logger(FilterNames.name);
  /** The classes that the database returned last; null: it has not returned any yet. */
  private classes: ReadonlySet<string> | null = null;

  constructor(
    private readonly registry: ToolRegistry,
    private readonly catalogue: SchemaCatalogue,
  ) {}

  /**
   * @param policy that the agent definitions are checked with. Classes are skipped with a warning while the database
   * cannot list them.
   */
  async unknownIn(definitions: Iterable<AgentDefinition>, policy: Policy): Promise<UnknownName[]> {
    const all = [...definitions];
    const isLimited = all.some(({ classes, filters }) => classes.only || filters.size > 0);
    const classes = isLimited ? await this.listKnownClasses() : null;
    return all.flatMap((definition) =>
      unknownAgentNames(definition, policy, { tools: this.tools(), classes }),
    );
  }

  /**
   * Fields that a policy or a filter of an agent names and that their classes do not have. Returns none, with a
   * warning, while the database cannot list its classes. Calls on the classes concerned are then refused once it can.
   */
  async misfits(definitions: Iterable<AgentDefinition>, policy: Policy): Promise<readonly BindingIssue[]> {
    const all = [...definitions];
    if (policy.classes.size === 0 && all.every(({ filters }) => filters.size === 0)) return [];
    try {
      return bindPolicy(policy, await this.catalogue.snapshot(), all).errors;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.logger.warn('the fields of the policy could not be checked: the database could not be read');
      return [];
    }
  }

  /** Whether the database has no class at all. @throws StoreError while it cannot be read */
  async isEmpty(): Promise<boolean> {
    return (await this.catalogue.snapshot()).classNames().length === 0;
  }

  /**
   * The same check without a database read. It uses the classes that the database returned last, and skips classes
   * before the first answer.
   */
  unknownNow(definition: AgentDefinition, policy: Policy): UnknownName[] {
    const found = unknownAgentNames(definition, policy, { tools: this.tools(), classes: this.classes });
    // Refreshes the classes for the next check.
    void this.listKnownClasses();
    return found;
  }

  private tools(): ReadonlySet<string> {
    return new Set(this.registry.all().map(({ definition }) => definition.name));
  }

  private async listKnownClasses(): Promise<ReadonlySet<string> | null> {
    try {
      this.classes = new Set((await this.catalogue.snapshot()).classNames());
      return this.classes;
    } catch {
      this.logger.warn('the classes of agents could not be checked: the database could not be read');
      return null;
    }
  }
}
