import { type AgentShape, isTier, type Tier } from '#agent';
import { rootOf } from '../model/field-names.js';

/**
 * What becomes of a field for agents of one tier. `drop`: as if there were no such field. `deny`: left out, and naming it is
 * a refusal. `mask`: a fixed text stands for every value. `hash`: a pseudonym stands for it. `none`: the value itself.
 */
export type MaskRule =
  | { readonly kind: 'none' | 'drop' | 'deny' }
  /** Characters at the end that stay; 0: none. */
  | { readonly kind: 'mask'; readonly keep: number }
  | {
      readonly kind: 'hash';
      /** Fields of one domain share their pseudonyms; null: the field has its own. */
      readonly domain: string | null;
      readonly acrossTenants: boolean;
    };

export type TierMasks = Readonly<Record<Tier, MaskRule>>;

export const FULL_MASK: MaskRule = { kind: 'mask', keep: 0 };

function rank(rule: MaskRule): number {
  if (rule.kind === 'mask') return rule.keep === 0 ? 2 : 1;
  return { none: 0, hash: 1, deny: 3, drop: 4 }[rule.kind];
}

/** Whether `one` shows nothing that `other` does not. Of an ending and a pseudonym neither is the stricter. */
export function isAsStrict(one: MaskRule, other: MaskRule): boolean {
  if (rank(one) !== rank(other)) return rank(one) > rank(other);
  if (one.kind === 'mask') return other.kind === 'mask' && one.keep <= other.keep;
  if (one.kind !== 'hash') return one.kind === other.kind;
  if (other.kind !== 'hash' || (one.acrossTenants && !other.acrossTenants)) return false;
  return one.domain === null || one.domain === other.domain;
}

/** The weakest rule that shows nothing that either would not. */
export function strictestOf(one: MaskRule, other: MaskRule): MaskRule {
  if (isAsStrict(one, other)) return one;
  return isAsStrict(other, one) ? other : FULL_MASK;
}

/** In the words of the configuration. */
export function describeMask(rule: MaskRule): string {
  if (rule.kind === 'mask' && rule.keep > 0) return `mask, last ${rule.keep} kept`;
  if (rule.kind !== 'hash') return rule.kind;
  const shared = rule.domain === null ? '' : `, shared as ${rule.domain}`;
  return `hash${shared}${rule.acrossTenants ? ', across tenants' : ''}`;
}

/** A mask on a column or on a path inside it. */
export interface PathMask {
  /** Below the column; none: the column itself. */
  readonly segments: readonly string[];
  readonly path: string;
  readonly rule: MaskRule;
}

/** What one agent shape may see of the masked columns of a class. None of these columns may be named in a query. */
export interface ColumnMasks {
  /** By column, the deepest path first: a pseudonym of a whole never tells of a masked part. */
  readonly columns: ReadonlyMap<string, readonly PathMask[]>;
  /** Columns that a read answers with, in masked form. */
  readonly shown: ReadonlySet<string>;
  /** Every column that a read fetches. A value that a fixed text stands for is not among them. */
  readonly fetchable: ReadonlySet<string>;
  /** Columns that the allowlist leaves out, or a `drop` takes away as a whole: refused as those that do not exist. */
  readonly secret: ReadonlySet<string>;
  /** Columns whose masks the agent may be told of. */
  readonly told: ReadonlySet<string>;
}

interface MaskedClass {
  readonly masks: ReadonlyMap<string, TierMasks>;
  /** What the allowlist leaves; null: everything. */
  readonly listed: ReadonlySet<string> | null;
  /** The columns of the class. */
  readonly known: ReadonlySet<string>;
  /** Leads into a class that the agent may not know. */
  isWithheld(column: string): boolean;
}

export interface MaskedColumns {
  readonly readable: ReadonlySet<string>;
  readonly masks: ColumnMasks;
}

/** Null: nothing of the class is masked for the shape. A mask never shows what the allowlist does not. */
export function maskedColumns(
  { masks, listed, known, isWithheld }: MaskedClass,
  shape: AgentShape,
): MaskedColumns | null {
  const columns = new Map<string, PathMask[]>();
  for (const [path, tiers] of masks) {
    const root = rootOf(path);
    const declared = ruleFor(shape, tiers);
    if (declared.kind === 'none') continue;
    // Equal ids would be seen to be equal, where the placeholder says nothing.
    const rule = declared.kind === 'hash' && isWithheld(root) ? FULL_MASK : declared;
    columns.set(root, [...(columns.get(root) ?? []), { path, rule, segments: path.split('.').slice(1) }]);
  }
  if (columns.size === 0) return null;
  const base = listed ?? known;
  const readable = new Set([...base].filter((name) => !columns.has(name)));
  const shown = new Set<string>();
  const fetched = new Set<string>();
  const secret = new Set<string>();
  for (const [root, paths] of columns) {
    paths.sort((one, other) => other.segments.length - one.segments.length);
    const whole = paths.find(({ segments }) => segments.length === 0)?.rule;
    if (whole?.kind === 'drop' || !(listed?.has(root) ?? true)) secret.add(root);
    if (!base.has(root) || whole?.kind === 'drop' || whole?.kind === 'deny') continue;
    shown.add(root);
    if (needsValue(whole)) fetched.add(root);
  }
  const told = new Set([...columns.keys()].filter((root) => !secret.has(root)));
  const fetchable = new Set([...readable, ...fetched]);
  return { readable, masks: { columns, shown, fetchable, secret, told } };
}

/**
 * Beside the columns that class-level permissions hide, too: none of them is told of, and what both withhold is not shown in masked
 * form either, on any row that no exception shows.
 */
export function withoutColumns(
  masks: ColumnMasks,
  { hidden, perRow }: { readonly hidden: ReadonlySet<string>; readonly perRow: boolean },
): ColumnMasks {
  const others = (names: ReadonlySet<string>) => new Set([...names].filter((name) => !hidden.has(name)));
  const told = others(masks.told);
  if (perRow) return { ...masks, told };
  return { ...masks, told, shown: others(masks.shown), fetchable: others(masks.fetchable) };
}

/** Paths and what is done with them, as far as the agent may know of them. */
export function toldMasks({ columns, shown, told: tellable }: ColumnMasks): ReadonlyMap<string, string> {
  const told = new Map<string, string>();
  for (const [root, paths] of columns) {
    if (!tellable.has(root)) continue;
    for (const { path, rule } of paths) {
      if (rule.kind === 'drop' || (rule.kind !== 'deny' && !shown.has(root))) continue;
      told.set(path, describeMask(rule));
    }
  }
  return told;
}

const POINTER_PREFIX = '_p_';

/** The column that a name means, by field or by the form it is stored in. */
export function columnOf(root: string): string {
  return root.startsWith(POINTER_PREFIX) ? root.slice(POINTER_PREFIX.length) : root;
}

/** The column that a pointer field is stored in. */
export function storedPointerColumn(field: string): string {
  return POINTER_PREFIX + field;
}

/** Whether the agent may not even be told that the column is there. */
export function isSecretColumn({ secret }: ColumnMasks, root: string): boolean {
  return secret.has(columnOf(root));
}

/** All of them, for operators. */
export function describeMasks({ columns }: ColumnMasks): ReadonlyMap<string, string> {
  return new Map([...columns.values()].flat().map(({ path, rule }) => [path, describeMask(rule)]));
}

/** Whether the path is, or lies within, what may not be named at all and is known to be there. */
export function isDeniedPath({ columns, told }: ColumnMasks, path: string): boolean {
  if (!told.has(rootOf(path))) return false;
  const masks = columns.get(rootOf(path)) ?? [];
  return masks.some(({ path: masked, rule }) => rule.kind === 'deny' && `${path}.`.startsWith(`${masked}.`));
}

/** A sub-agent sees no more than those above it. */
function ruleFor(shape: AgentShape, tiers: TierMasks): MaskRule {
  const own = tiers[isTier(shape.permissions) ? shape.permissions : 'readonly'];
  return shape.outer ? strictestOf(own, ruleFor(shape.outer, tiers)) : own;
}

function needsValue(whole: MaskRule | undefined): boolean {
  return whole === undefined || whole.kind === 'hash' || (whole.kind === 'mask' && whole.keep > 0);
}
