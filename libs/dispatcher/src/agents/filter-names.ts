import { Injectable, Logger } from '@nestjs/common';
import { type AgentShape, canonicalClassName, isSystemClassName } from '#agent';
import { SchemaCatalogue } from '#data';
import type { Policy } from '#policy';
import { ToolRegistry } from '#tools';

/** A name in an agent's filters that nothing has. */
export interface UnknownName {
  readonly agent: string;
  /** `tools` or `classes`. */
  readonly option: 'tools' | 'classes';
  readonly name: string;
  /** A fault, where the agent or the policy is strict about that option; otherwise worth a warning. */
  readonly strict: boolean;
}

/**
 * Looks for names in `tools` and in `classes.only` that nothing has: as good as certainly misspelt. They are kept, because
 * a tool or class of that name may come later.
 */
@Injectable()
export class FilterNames {
  private readonly logger = new Logger(FilterNames.name);

  constructor(
    private readonly registry: ToolRegistry,
    private readonly catalogue: SchemaCatalogue,
  ) {}

  /** @param policy that the shapes are judged under. Classes are not judged, with a warning, while the database cannot say which it has. */
  async unknownIn(shapes: Iterable<AgentShape>, policy: Policy): Promise<UnknownName[]> {
    const all = [...shapes];
    const classes = all.some((shape) => shape.classes.only) ? await this.knownClasses(policy) : null;
    return all.flatMap((shape) => [
      ...this.unknownTools(shape, policy),
      ...this.unknownClasses(shape, policy, classes),
    ]);
  }

  private unknownTools(shape: AgentShape, policy: Policy): UnknownName[] {
    const { only, except } = shape.tools;
    const strict = shape.strictToolFilter ?? policy.switches.strictToolFilter;
    return [...new Set([...(only ?? []), ...(except ?? [])])]
      .filter((name) => !this.registry.get(name))
      .map((name) => ({ agent: shape.name, option: 'tools', name, strict }));
  }

  private unknownClasses(
    shape: AgentShape,
    policy: Policy,
    known: ReadonlySet<string> | null,
  ): UnknownName[] {
    if (!known) return [];
    const strict = shape.strictClassFilter ?? policy.switches.strictClassFilter;
    return [...(shape.classes.only ?? [])]
      .filter((name) => !known.has(canonicalClassName(name)) && !isSystemClassName(name))
      .map((name) => ({ agent: shape.name, option: 'classes', name, strict }));
  }

  private async knownClasses(policy: Policy): Promise<ReadonlySet<string> | null> {
    try {
      const schemas = await this.catalogue.snapshot();
      return new Set([...policy.classes.keys(), ...schemas.classNames()]);
    } catch {
      this.logger.warn('the classes of agents could not be checked: the database does not answer');
      return null;
    }
  }
}
