import { Injectable } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { RegistryChanges } from './registry-changes.js';
import { declaredArguments } from '../arguments/declared-arguments.js';
import type { ToolRegistration } from '../declaration/tool.decorator.js';
import { checkedHandler } from '../declaration/checked-handler.js';
import { checkDefinition, ToolDeclarationError } from '../declaration/tool-declaration.js';
import { BUILT_IN_GATES } from './built-in-gates.js';
import { type RegisteredTool, ToolRegistry } from './tool-registry.js';

/** The registry of one process. */
@Injectable()
export class ToolCatalogue extends ToolRegistry {
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
    for (const { definition, handler } of tools) {
      checkDefinition(definition);
      if (!BUILT_IN_GATES.has(definition.name))
        throw new ToolDeclarationError(definition.name, 'not a built-in');
      if (this.builtIns.has(definition.name))
        throw new ToolDeclarationError(definition.name, 'declared twice');
      const refuseUnknown = declaredArguments(definition);
      this.builtIns.set(definition.name, { definition, handler, builtIn: true, refuseUnknown });
    }
    this.installed = true;
    this.announce();
  }

  registerDeclared(tools: Iterable<ToolRegistration>): void {
    for (const tool of tools) {
      const { name } = tool.definition;
      if (this.added.has(name)) throw new ToolDeclarationError(name, 'is already registered');
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
    const tool: RegisteredTool = {
      definition: Object.freeze({ ...definition, ...gates }),
      handler: checkedHandler(registration),
      builtIn: false,
    };
    this.added.set(name, tool);
    this.announce();
    return () => {
      if (this.added.get(name) !== tool) return;
      this.added.delete(name);
      this.announce();
    };
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
