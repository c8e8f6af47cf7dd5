import { orThrow, Refused, refusals } from '#core';
import { type ClassAccess, columnRefusal } from '../model/class-access.js';
import { hasInternalSegment, rootOf } from '../model/field-names.js';
import { pipelineBlocked } from './stages.js';

/** Names of a stage's output: as the caller may write them → as in the document. */
export type AddedFields = ReadonlyMap<string, string>;

/**
 * The names that a stage may use at its place in the pipeline: columns of the class while the source documents still exist, and
 * names that earlier stages introduced. Immutable; `after` creates the frame of the next stage.
 */
export class Frame {
  private constructor(
    readonly access: ClassAccess,
    readonly sourceAddressable: boolean,
    private readonly introduced: AddedFields,
    /** Variables in scope. One that may hold a whole document has the frame of that document. */
    private readonly variables: ReadonlyMap<string, Frame | null>,
    /** Whether the documents have fields that cannot be listed, all with values that the caller may see. */
    private readonly open = false,
  ) {}

  /** The frame before the first stage; a sub-pipeline sees the variables of the pipeline around it. */
  static atSource(access: ClassAccess, outer?: Frame): Frame {
    return new Frame(access, true, new Map(), outer?.variables ?? new Map());
  }

  /** The path as in the document: introduced names unchanged, columns by their wire name. @throws Refused */
  resolve(path: string, context: string): string {
    const root = rootOf(path);
    return this.resolveRoot(root, path, context) + path.slice(root.length);
  }

  /** As `resolve` without checks, for exclusions, which must still match the right column. */
  resolveUnchecked(path: string): string {
    const root = rootOf(path);
    if (this.introduced.has(root) || !this.sourceAddressable) {
      return (this.introduced.get(root) ?? root) + path.slice(root.length);
    }
    return this.access.names.wirePath(path);
  }

  isIntroduced(root: string): boolean {
    return this.introduced.has(root);
  }

  /** The frame of the document in a variable; null when the variable holds a checked value. */
  variable(name: string): Frame | null {
    const frame = this.variables.get(name);
    if (frame === undefined) {
      throw new Refused(refusals.invalidArgument(`the pipeline uses the undefined variable '$$${name}'`));
    }
    return frame;
  }

  binds(name: string): boolean {
    return /^[A-Z]/.test(name) || this.variables.has(name);
  }

  bind(variables: Iterable<readonly [string, Frame | null]>): Frame {
    const bound = new Map(this.variables);
    for (const [name, frame] of variables) {
      // Callers may bind such names only: a new `CURRENT` would change the meaning of every reference.
      if (!/^[a-z][A-Za-z0-9_]{0,63}$/.test(name)) throw pipelineBlocked('denied_system_variable', name);
      bound.set(name, frame);
    }
    return new Frame(this.access, this.sourceAddressable, this.introduced, bound, this.open);
  }

  /** @param opens whether the new documents have fields that the stage does not list */
  after(introduces: AddedFields, replacesSource: boolean, opens = false): Frame {
    return new Frame(
      this.access,
      this.sourceAddressable && !replacesSource,
      replacesSource ? introduces : withNames(this.introduced, introduces),
      this.variables,
      opens || (this.open && !replacesSource),
    );
  }

  private resolveRoot(root: string, path: string, context: string): string {
    const given = this.introduced.get(root);
    if (given !== undefined) return given;
    const { names, readable } = this.access;
    if (!this.sourceAddressable) {
      if (readable === null) return root;
      if (this.open && !hasInternalSegment(root)) return root;
      throw new Refused(refusals.fieldDenied(context, path, root, [...this.introduced.keys()]));
    }
    const wire = names.wireName(root);
    if (hasInternalSegment(wire)) throw pipelineBlocked('denied_internal_field', path);
    orThrow(columnRefusal(context, path, wire, this.access, this.introduced.keys()));
    return wire;
  }
}

/** Most stages add no name. */
function withNames(known: AddedFields, added: AddedFields): AddedFields {
  return added.size === 0 ? known : new Map([...known, ...added]);
}
