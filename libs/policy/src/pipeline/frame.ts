import { orThrow, refuse } from '#core';
import { type ClassAccess, columnRefusal, mayNameColumn } from '../model/class-access.js';
import { assertNotInsideFlat } from '../masking/withheld-objects.js';
import { hasInternalSegment, takeRoot } from '../model/field-names.js';
import {
  type Note,
  noteColumn,
  toObjectType,
  typeAt,
  typeOfColumn,
  type ValueType,
} from '../model/value-type.js';
import { pipelineBlocked } from './stages.js';

/** Names of a stage's output: as the caller may write them → as in the document. */
export type AddedFields = ReadonlyMap<string, string>;

/** What is known of the values of output names, as in the document. */
export type AddedTypes = ReadonlyMap<string, ValueType | undefined>;

/** A variable: the frame of the document that it may hold, and what is known of its values. */
export type Binding = readonly [name: string, document: Frame | null, type?: ValueType | undefined];

interface Variable {
  readonly document: Frame | null;
  readonly type: ValueType | undefined;
}

/** What a stage makes of the documents; nothing: they stay as they are. */
export interface Outcome {
  /** Names that later stages may use. Default none. */
  readonly introduces?: AddedFields;
  /** Default: nothing is known of other values than before. */
  readonly types?: AddedTypes;
  /** Whether later stages can only use introduced names. Default false. */
  readonly replacesSource?: boolean;
  /** Whether the new documents have fields that the stage does not list. Default false. */
  readonly opens?: boolean;
  /** What is known of the documents themselves. Default: as before, or nothing where they are replaced. */
  readonly documents?: ValueType | undefined;
}

const NO_NAMES: AddedFields = new Map();
const NO_TYPES: AddedTypes = new Map();

/** What the frame of a pipeline consists of. */
interface Parts {
  readonly access: ClassAccess;
  readonly sourceAddressable: boolean;
  readonly introduced: AddedFields;
  /** Of introduced names, and of columns that a stage changed. */
  readonly types: AddedTypes;
  readonly documents: ValueType | undefined;
  readonly variables: ReadonlyMap<string, Variable>;
  /** Whether the documents have fields that cannot be listed, all with values that the caller may see. */
  readonly open: boolean;
  readonly note: Note | undefined;
}

/** What rows show of an object of a withheld class. */
const PLACEHOLDER_MEMBERS: ReadonlySet<string> = new Set(['__redacted', 'className']);

/**
 * The names that a stage may use at its place in the pipeline, and what is known of their values: columns of the class while the
 * source documents still exist, and names that earlier stages introduced. Immutable; `after` creates the frame of the next stage.
 */
export class Frame {
  private constructor(private readonly parts: Parts) {}

  /** The frame before the first stage; a sub-pipeline sees the variables of the pipeline around it. */
  static atSource(access: ClassAccess, outer?: Frame, note?: Note): Frame {
    return new Frame({
      access,
      sourceAddressable: true,
      introduced: new Map(),
      types: new Map(),
      documents: toObjectType((name) => findShownType(name, access)),
      variables: outer?.parts.variables ?? new Map(),
      open: false,
      note: outer?.note ?? note,
    });
  }

  get access(): ClassAccess {
    return this.parts.access;
  }

  get sourceAddressable(): boolean {
    return this.parts.sourceAddressable;
  }

  /** Takes remarks for the answer. */
  get note(): Note | undefined {
    return this.parts.note;
  }

  /** The path as in the document: introduced names unchanged, columns by their wire name. @throws Refused */
  resolve(path: string, context: string): string {
    const root = takeRoot(path);
    return this.resolveRoot(root, path, context) + path.slice(root.length);
  }

  /** As `resolve` without checks, for exclusions, which must still match the right column. */
  resolveUnchecked(path: string): string {
    const root = takeRoot(path);
    return this.resolveName(root) + path.slice(root.length);
  }

  isIntroduced(root: string): boolean {
    return this.parts.introduced.has(root);
  }

  /** What is known of the values at a path. Nothing is known of a column that the caller may not name. */
  findType(path: string, inExpression: boolean): ValueType | undefined {
    const [root = '', ...inside] = path.split('.');
    const name = this.resolveName(root);
    const { types, documents } = this.parts;
    const type = types.has(name) ? types.get(name) : documents?.member?.(name);
    return inside.length === 0 ? type : typeAt(type, inside, inExpression);
  }

  /** Whether no document has the name. */
  lacks(name: string): boolean {
    const { introduced, documents, sourceAddressable, access } = this.parts;
    if (introduced.has(name)) return false;
    if (!sourceAddressable) return documents === undefined;
    return (
      access.schema !== undefined && access.schema.storage !== 'plain' && !access.schema.fields.has(name)
    );
  }

  /** What is known of the documents as values. */
  get documentType(): ValueType {
    return toObjectType((name) => this.findType(name, true));
  }

  /** The frame of the document in a variable; null when the variable holds a checked value. */
  variable(name: string): Frame | null {
    const variable = this.parts.variables.get(name);
    if (variable === undefined) {
      throw refuse.invalidArgument(`the pipeline uses the undefined variable '$$${name}'`);
    }
    return variable.document;
  }

  variableType(name: string): ValueType | undefined {
    return this.parts.variables.get(name)?.type;
  }

  binds(name: string): boolean {
    return /^[A-Z]/.test(name) || this.parts.variables.has(name);
  }

  bind(variables: Iterable<Binding>): Frame {
    const bound = new Map(this.parts.variables);
    for (const [name, document, type] of variables) {
      // Callers may bind such names only: a new `CURRENT` would change the meaning of every reference.
      if (!/^[a-z][A-Za-z0-9_]{0,63}$/.test(name)) throw pipelineBlocked('denied_system_variable', name);
      bound.set(name, { document, type });
    }
    return new Frame({ ...this.parts, variables: bound });
  }

  after({
    introduces = NO_NAMES,
    types = NO_TYPES,
    replacesSource = false,
    opens = false,
    documents,
  }: Outcome): Frame {
    const { parts } = this;
    if (!replacesSource && introduces.size === 0 && types.size === 0 && !documents) return this;
    return new Frame({
      ...parts,
      sourceAddressable: parts.sourceAddressable && !replacesSource,
      introduced: replacesSource ? introduces : withNames(parts.introduced, introduces),
      types: replacesSource || documents ? types : new Map([...parts.types, ...types]),
      documents: replacesSource ? documents : (documents ?? parts.documents),
      open: opens || (parts.open && !replacesSource),
    });
  }

  private resolveName(root: string): string {
    const { introduced, sourceAddressable, access } = this.parts;
    return introduced.get(root) ?? (sourceAddressable ? access.names.resolveColumn(root) : root);
  }

  /** A stored reference has no members, but for those of a placeholder: a path into it would be null in every row. */
  private assertNoReference(root: string, wire: string, path: string): void {
    if (PLACEHOLDER_MEMBERS.has(path.slice(root.length + 1))) return;
    if (this.parts.types.has(wire) || this.access.schema?.fields.get(wire)?.type !== 'Pointer') return;
    throw refuse.invalidQuery(
      `'${root}' points to another class, and its id is '${root}' itself: for other columns join it in aggregate, by ` +
        `{"$lookup":{"from":CLASS,"localField":"${root}","foreignField":"objectId","as":NAME}}, and write NAME.COLUMN`,
    );
  }

  private resolveRoot(root: string, path: string, context: string): string {
    const { introduced, open } = this.parts;
    const given = introduced.get(root);
    if (given !== undefined) return given;
    const { names, readable } = this.access;
    if (!this.sourceAddressable) {
      if (readable === null) return root;
      if (open && !hasInternalSegment(root)) return root;
      throw refuse.fieldDenied(context, path, root, [...introduced.keys()]);
    }
    const wire = names.wireName(root);
    if (hasInternalSegment(wire)) throw pipelineBlocked('denied_internal_field', path);
    orThrow(columnRefusal(context, path, wire, this.access, introduced.keys()));
    if (path !== root) {
      assertNotInsideFlat(wire, this.access, true);
      this.assertNoReference(root, wire, path);
    }
    noteColumn(wire + path.slice(root.length), this.access, this.note);
    return wire;
  }
}

/** A column that the caller may not name has no type for it: a refusal would tell it. */
function findShownType(name: string, access: ClassAccess): ValueType | undefined {
  if (hasInternalSegment(name) || !mayNameColumn(name, access)) return undefined;
  if (access.withheld?.has(name)) return undefined;
  return typeOfColumn(name, access.schema);
}

/** Most stages add no name. */
function withNames(known: AddedFields, added: AddedFields): AddedFields {
  return added.size === 0 ? known : new Map([...known, ...added]);
}
