import { Injectable, Logger } from '@nestjs/common';
import type { AgentShape } from '#core';
import { SchemaCatalogue, StoreError } from '#data';
import { type BindingIssue, bindPolicy, type Policy, type UnknownName, unknownAgentNames } from '#policy';
import { ToolRegistry } from '#tools';

/** Looks for names in the limits of agents that nothing has, among the tools that are registered and the classes of the database. */
@Injectable()
export class FilterNames {
  private readonly logger = new Logger(FilterNames.name);
  /** As the database said last; null: it has not said yet. */
  private classes: ReadonlySet<string> | null = null;

  constructor(
    private readonly registry: ToolRegistry,
    private readonly catalogue: SchemaCatalogue,
  ) {}

  /** @param policy that the shapes are judged under. Classes are not judged, with a warning, while the database cannot say which it has. */
  async unknownIn(shapes: Iterable<AgentShape>, policy: Policy): Promise<UnknownName[]> {
    const all = [...shapes];
    const asked = all.some(({ classes, filters }) => classes.only || filters.size > 0);
    const classes = asked ? await this.knownClasses() : null;
    return all.flatMap((shape) => unknownAgentNames(shape, policy, { tools: this.tools(), classes }));
  }

  /**
   * What of a policy and of agents' filters names fields that their classes do not have. None, with a warning, while the database
   * cannot say which there are: the classes concerned are refused then, once it can.
   */
  async misfits(shapes: Iterable<AgentShape>, policy: Policy): Promise<readonly BindingIssue[]> {
    const all = [...shapes];
    if (policy.classes.size === 0 && all.every(({ filters }) => filters.size === 0)) return [];
    try {
      return bindPolicy(policy, await this.catalogue.snapshot(), all).errors;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.logger.warn('the fields of the policy could not be checked: the database does not answer');
      return [];
    }
  }

  /** The same without waiting: among the classes that the database named last, none of which are judged before it has. */
  unknownNow(shape: AgentShape, policy: Policy): UnknownName[] {
    const found = unknownAgentNames(shape, policy, { tools: this.tools(), classes: this.classes });
    // For the next time, whatever was found now.
    void this.knownClasses();
    return found;
  }

  private tools(): ReadonlySet<string> {
    return new Set(this.registry.all().map(({ definition }) => definition.name));
  }

  private async knownClasses(): Promise<ReadonlySet<string> | null> {
    try {
      this.classes = new Set((await this.catalogue.snapshot()).classNames());
      return this.classes;
    } catch {
      this.logger.warn('the classes of agents could not be checked: the database does not answer');
      return null;
    }
  }
}
