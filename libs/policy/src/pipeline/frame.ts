import { orThrow, Refused, refusals } from '#agent';
import { type ClassAccess, columnRefusal } from '../model/class-access.js';
import { hasInternalSegment, rootOf } from '../model/field-names.js';
import { pipelineBlocked } from './stages.js';

/** A name a stage gave to its output: how the caller may write it → how the document holds it. */
export type Introduced = ReadonlyMap<string, string>;

/**
 * What a stage may name at its place in the pipeline: columns of the class while the source documents are still
 * there, and whatever earlier stages introduced. Immutable; every stage yields the frame of the next.
 */
export class Frame {
  private constructor(
    readonly access: ClassAccess,
    readonly sourceAddressable: boolean,
    private readonly introduced: Introduced,
    /** Variables in scope; one that may hold a whole document carries the frame it was taken in. */
    private readonly variables: ReadonlyMap<string, Frame | null>,
    /** The documents hold names that nobody could list, all of values that the caller may see. */
    private readonly open = false,
  ) {}

  /** The frame before the first stage; a sub-pipeline sees the variables of the pipeline around it. */
  static atSource(access: ClassAccess, outer?: Frame): Frame {
    return new Frame(access, true, new Map(), outer?.variables ?? new Map());
  }

  /** The path as the document holds it. Names introduced earlier are taken as they are, columns by their wire name. */
  resolve(path: string, context: string): string {
    const root = rootOf(path);
    return this.resolveRoot(root, path, context) + path.slice(root.length);
  }

  /** As `resolve`, for places that judge nothing: an exclusion must still find the column it means. */
  spell(path: string): string {
    const root = rootOf(path);
    if (this.introduced.has(root) || !this.sourceAddressable) {
      return (this.introduced.get(root) ?? root) + path.slice(root.length);
    }
    return this.access.names.wirePath(path);
  }

  isIntroduced(root: string): boolean {
    return this.introduced.has(root);
  }

  /** The frame a variable's document belongs to; null when it holds a value already judged. */
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
      // Only such names are the caller's: `CURRENT` could be bound anew and every reference would change its meaning.
      if (!/^[a-z][A-Za-z0-9_]{0,63}$/.test(name)) throw pipelineBlocked('denied_system_variable', name);
      bound.set(name, frame);
    }
    return new Frame(this.access, this.sourceAddressable, this.introduced, bound, this.open);
  }

  /** @param opens whether the new documents hold names that are not written out */
  after(introduces: Introduced, replacesSource: boolean, opens = false): Frame {
    return new Frame(
      this.access,
      this.sourceAddressable && !replacesSource,
      replacesSource ? introduces : new Map([...this.introduced, ...introduces]),
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
