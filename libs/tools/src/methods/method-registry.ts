import { Injectable } from '@nestjs/common';
import { canonicalClassName } from '#agent';
import { type CallableMethod, CallableMethods } from '../declared-methods.js';
import { MethodDeclarationError } from './method-declaration.js';

/** The declared methods of one process. Only what was registered here by name can be called. */
@Injectable()
export class MethodRegistry extends CallableMethods {
  private readonly classes = new Map<string, Map<string, CallableMethod>>();

  /** @throws MethodDeclarationError when the class has a method of that name */
  register(className: string, method: CallableMethod): void {
    const name = canonicalClassName(className);
    const methods = this.classes.get(name) ?? new Map<string, CallableMethod>();
    if (methods.has(method.name)) throw new MethodDeclarationError(name, method.name, 'is declared twice');
    methods.set(method.name, method);
    this.classes.set(name, methods);
  }

  of(className: string): readonly CallableMethod[] {
    return [...(this.classes.get(className)?.values() ?? [])];
  }

  find(className: string, name: string): CallableMethod | undefined {
    return this.classes.get(className)?.get(name);
  }
}
