import { type AgentDefinition, isTier } from '#core';
import { logicalColumn, takeRoot } from '../model/field-names.js';
import { chooseStrictest, describeMask, FULL_MASK, type MaskRule, type TierMasks } from './compile-masks.js';

/** A mask on a column or on a path inside it. */
export interface PathMask {
  /** The path below the column; empty: the column itself. */
  readonly segments: readonly string[];
  readonly path: string;
  readonly rule: MaskRule;
}

/** What one agent definition may see of the masked columns of a class. No query may name these columns. */
export interface ColumnMasks {
  /** By column, the deepest path first: the pseudonym of a whole must not depend on a masked part. */
  readonly columns: ReadonlyMap<string, readonly PathMask[]>;
  /** Columns that a read returns, in masked form. */
  readonly shown: ReadonlySet<string>;
  /** Columns that a read fetches. Values that a fixed text replaces are not fetched. */
  readonly fetchable: ReadonlySet<string>;
  /** Columns outside the allowlist, or dropped as a whole: refused like columns that do not exist. */
  readonly secret: ReadonlySet<string>;
  /** Columns whose masks the agent may know. */
  readonly disclosed: ReadonlySet<string>;
}

interface MaskedClass {
  readonly masks: ReadonlyMap<string, TierMasks>;
  /** The columns of the allowlist; null: all. */
  readonly listed: ReadonlySet<string> | null;
  /** The columns of the class. */
  readonly known: ReadonlySet<string>;
  /** Whether the column points to a class that the agent may not know. */
  isWithheld(column: string): boolean;
}

interface MaskedColumns {
  readonly readable: ReadonlySet<string>;
  readonly masks: ColumnMasks;
}

/** Null: no column of the class is masked for the definition. Masks never show columns outside the allowlist. */
export function findMaskedColumns(
  { masks, listed, known, isWithheld }: MaskedClass,
  definition: AgentDefinition,
): MaskedColumns | null {
  const columns = new Map<string, PathMask[]>();
  for (const [path, tiers] of masks) {
    const root = takeRoot(path);
    const declared = ruleFor(definition, tiers);
    if (declared.kind === 'none') continue;
    // A pseudonym would show which ids are equal; the placeholder does not.
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
  const disclosed = new Set([...columns.keys()].filter((root) => !secret.has(root)));
  const fetchable = new Set([...readable, ...fetched]);
  return { readable, masks: { columns, shown, fetchable, secret, disclosed } };
}

/**
 * Combines masks with the columns that class-level permissions hide: those masks are not disclosed, and unless some rows show the
 * column, its masked form is not returned either.
 */
export function withoutColumns(
  masks: ColumnMasks,
  { hidden, perRow }: { readonly hidden: ReadonlySet<string>; readonly perRow: boolean },
): ColumnMasks {
  const others = (names: ReadonlySet<string>) => new Set([...names].filter((name) => !hidden.has(name)));
  const disclosed = others(masks.disclosed);
  if (perRow) return { ...masks, disclosed };
  return { ...masks, disclosed, shown: others(masks.shown), fetchable: others(masks.fetchable) };
}

/** The masked paths with a description of each, as far as the agent may know them. */
export function listDisclosedMasks({ columns, shown, disclosed }: ColumnMasks): ReadonlyMap<string, string> {
  const described = new Map<string, string>();
  for (const [root, paths] of columns) {
    if (!disclosed.has(root)) continue;
    for (const { path, rule } of paths) {
      if (rule.kind === 'drop' || (rule.kind !== 'deny' && !shown.has(root))) continue;
      described.set(path, describeMask(rule));
    }
  }
  return described;
}

/** Whether the existence of the column must not be disclosed to the agent. */
export function isSecretColumn({ secret }: ColumnMasks, root: string): boolean {
  return secret.has(logicalColumn(root));
}

/** All masked paths with a description of each, for operators. */
export function describeMasks({ columns }: ColumnMasks): ReadonlyMap<string, string> {
  return new Map([...columns.values()].flat().map(({ path, rule }) => [path, describeMask(rule)]));
}

/** Whether the path is, or lies within, a field whose mask is `deny` and disclosed to the agent. */
export function isDeniedPath({ columns, disclosed }: ColumnMasks, path: string): boolean {
  if (!disclosed.has(takeRoot(path))) return false;
  const masks = columns.get(takeRoot(path)) ?? [];
  return masks.some(({ path: masked, rule }) => rule.kind === 'deny' && `${path}.`.startsWith(`${masked}.`));
}

/** The mask of a sub-agent is at least as strict as that of its parents. */
function ruleFor(definition: AgentDefinition, tiers: TierMasks): MaskRule {
  const own = tiers[isTier(definition.permissions) ? definition.permissions : 'readonly'];
  return definition.outer ? chooseStrictest(own, ruleFor(definition.outer, tiers)) : own;
}

function needsValue(whole: MaskRule | undefined): boolean {
  return whole === undefined || whole.kind === 'hash' || (whole.kind === 'mask' && whole.keep > 0);
}
