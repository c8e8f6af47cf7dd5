import { createHmac } from 'node:crypto';
import { type AgentDefinition, isTier, setOwn, type Tier, TIERS } from '#core';
import { ALWAYS_KEEP, hasInternalSegment, logicalColumn, takeRoot } from '../model/field-names.js';
import type { PolicyIssue } from '../model/policy-issue.js';
import { isPlainObject } from '../model/where.js';

/**
 * How a field is masked for one permission level. `drop`: as if the field did not exist. `deny`: left out, and naming it is
 * refused. `mask`: a fixed text replaces every value. `hash`: a pseudonym replaces it. `none`: the value itself.
 */
export type MaskRule =
  | { readonly kind: 'none' | 'drop' | 'deny' }
  /** The number of characters that stay at the end. */
  | { readonly kind: 'mask'; readonly keep: number }
  | {
      readonly kind: 'hash';
      /** Fields of one domain share pseudonyms; null: the field has its own. */
      readonly domain: string | null;
      readonly acrossTenants: boolean;
    };

export type TierMasks = Readonly<Record<Tier, MaskRule>>;

export const FULL_MASK: MaskRule = { kind: 'mask', keep: 0 };

function rank(rule: MaskRule): number {
  if (rule.kind === 'mask') return rule.keep === 0 ? 2 : 1;
  return { none: 0, hash: 1, deny: 3, drop: 4 }[rule.kind];
}

/** Whether `one` shows nothing that `other` does not. Neither of an ending and a pseudonym is stricter. */
export function isAsStrict(one: MaskRule, other: MaskRule): boolean {
  if (rank(one) !== rank(other)) return rank(one) > rank(other);
  if (one.kind === 'mask') return other.kind === 'mask' && one.keep <= other.keep;
  if (one.kind !== 'hash') return one.kind === other.kind;
  if (other.kind !== 'hash' || (one.acrossTenants && !other.acrossTenants)) return false;
  return one.domain === null || one.domain === other.domain;
}

/** The weakest rule that is as strict as both. */
export function chooseStrictest(one: MaskRule, other: MaskRule): MaskRule {
  if (isAsStrict(one, other)) return one;
  return isAsStrict(other, one) ? other : FULL_MASK;
}

/** In the form of the configuration. */
export function describeMask(rule: MaskRule): string {
  if (rule.kind === 'mask' && rule.keep > 0) return `mask, last ${rule.keep} kept`;
  if (rule.kind !== 'hash') return rule.kind;
  const shared = rule.domain === null ? '' : `, shared as ${rule.domain}`;
  return `hash${shared}${rule.acrossTenants ? ', across tenants' : ''}`;
}

/** A mask on a column or on a path inside it. */
interface PathMask {
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

/** How the values of a field are masked (docs/guide/masking.md). */
type MaskForm =
  | 'none'
  | 'drop'
  | 'deny'
  | 'mask'
  | 'hash'
  /** Discloses the last characters. */
  | { readonly mask: { readonly keep: number } }
  /** Pseudonyms shared by several fields or several tenants. */
  | { readonly hash: { readonly domain?: string; readonly acrossTenants?: boolean } };

/** One form for all permission levels, or one for each; a level that is left out uses that of the level below. */
export type MaskConfig =
  MaskForm | { readonly readonly: MaskForm; readonly write?: MaskForm; readonly admin?: MaskForm };

export type MasksConfig = Readonly<Record<string, MaskConfig>>;

/** @param path of the class in the configuration @returns masks by path, as written */
export function compileMasks(
  config: MasksConfig | undefined,
  path: string,
  issues: PolicyIssue[],
): ReadonlyMap<string, TierMasks> {
  const masks = new Map<string, TierMasks>();
  for (const [written, mask] of Object.entries(config ?? {})) {
    const at = `${path}.masks.${written}`;
    const issue = maskIssue(written);
    if (issue !== null) issues.push({ path: at, message: issue });
    else masks.set(written, tierMasks(mask, at, issues));
  }
  return masks;
}

/** Merges two declarations of one class: for each permission level the stricter mask. */
export function joinMasks(
  one: MasksConfig | undefined,
  other: MasksConfig | undefined,
): MasksConfig | undefined {
  if (!one || !other) return one ?? other;
  const joined: Record<string, MaskConfig> = { ...one };
  for (const [written, mask] of Object.entries(other)) {
    const known = Object.hasOwn(one, written) ? one[written] : undefined;
    joined[written] = known === undefined ? mask : strictest(known, mask);
  }
  return joined;
}

function strictest(one: MaskConfig, other: MaskConfig): MaskConfig {
  const [first, second] = [readRules(one), readRules(other)];
  const [readonly, write, admin] = TIERS.map((tier) => toForm(chooseStrictest(first[tier], second[tier])));
  return { readonly, write, admin } as MaskConfig;
}

/** Why the column cannot be masked; null when it can. */
export function maskIssue(wire: string): string | null {
  if (hasInternalSegment(wire)) return `'${wire}' is an internal column`;
  if ((ALWAYS_KEEP as readonly string[]).includes(takeRoot(wire)))
    return `'${takeRoot(wire)}' is part of every row and cannot be masked`;
  return null;
}

function tierMasks(config: MaskConfig, at: string, issues: PolicyIssue[]): TierMasks {
  const rules = readRules(config);
  TIERS.forEach((tier, index) => {
    const below = TIERS[index - 1];
    if (below === undefined || isAsStrict(rules[below], rules[tier])) return;
    issues.push({
      path: `${at}.${tier}`,
      message:
        `a higher tier is masked by less, not by '${describeMask(rules[tier])}' where ${below} has ` +
        `'${describeMask(rules[below])}'`,
    });
  });
  return rules;
}

function readRules(config: MaskConfig): TierMasks {
  const tiers = typeof config === 'object' && 'readonly' in config ? config : { readonly: config };
  const readonly = toRule(tiers.readonly);
  const write = 'write' in tiers && tiers.write !== undefined ? toRule(tiers.write) : readonly;
  const admin = 'admin' in tiers && tiers.admin !== undefined ? toRule(tiers.admin) : write;
  return { readonly, write, admin };
}

function toRule(form: MaskForm): MaskRule {
  if (form === 'mask') return { kind: 'mask', keep: 0 };
  if (form === 'hash') return { kind: 'hash', domain: null, acrossTenants: false };
  if (typeof form === 'string') return { kind: form };
  if ('mask' in form) return { kind: 'mask', keep: form.mask.keep };
  const { domain = null, acrossTenants = false } = form.hash;
  return { kind: 'hash', domain, acrossTenants };
}

function toForm(rule: MaskRule): MaskForm {
  if (rule.kind === 'mask') return rule.keep === 0 ? 'mask' : { mask: { keep: rule.keep } };
  if (rule.kind !== 'hash') return rule.kind;
  const { domain, acrossTenants } = rule;
  return { hash: { ...(domain !== null && { domain }), acrossTenants } };
}

/** Replaces every value of a masked field, of any type, and a missing one: it reveals neither. */
export const MASKED_TEXT = '***';

/** Returns the pseudonym of a value; only called when the rule is `hash`. */
export type NamePseudonym = (value: unknown, mask: PathMask) => string;

/**
 * Replaces each masked column by its masked form, in the row itself.
 * @param isShown whether the caller receives the column of this row
 */
export function maskRow(
  row: Record<string, unknown>,
  { columns, shown }: ColumnMasks,
  isShown: (column: string) => boolean,
  pseudonym: NamePseudonym,
): void {
  for (const [column, paths] of columns) {
    if (!shown.has(column) || !isShown(column)) {
      delete row[column];
      continue;
    }
    for (const mask of paths) {
      const value = row[column];
      if (mask.segments.length > 0) {
        if (column in row) putMasked(row, column, maskInside(value, mask.segments, mask, pseudonym));
        continue;
      }
      // Moved to the end: its position in the row would reveal whether it had a value.
      delete row[column];
      row[column] = maskValue(value, mask, pseudonym);
    }
  }
}

/** Sets a member to what a mask leaves of it; undefined: nothing. */
function putMasked(target: Record<string, unknown>, name: string, value: unknown): void {
  if (value === undefined) delete target[name];
  else setOwn(target, name, value);
}

/** Parse types that stand for GeoJSON: their members have other names than those of the stored value. */
const PLACES: ReadonlySet<unknown> = new Set(['GeoPoint', 'Polygon']);

/** Whether a path names a part of the GeoJSON, or of the pair of numbers, that is stored where a row shows a place. */
const isStoredPart = (value: Readonly<Record<string, unknown>>, [name = '']: readonly string[]): boolean =>
  PLACES.has(value['__type']) && (name === 'type' || name === 'coordinates' || NUMBER.test(name));

/**
 * Masks a path inside a value; undefined: nothing is left of it. A value of a Parse type has no fields that a path could mean, but
 * a place is masked as a whole with any part of what is stored.
 */
function maskInside(
  value: unknown,
  segments: readonly string[],
  mask: PathMask,
  pseudonym: NamePseudonym,
): unknown {
  if (Array.isArray(value))
    return value
      .map((entry: unknown) => maskInside(entry, segments, mask, pseudonym))
      .filter((entry) => entry !== undefined);
  if (!isPlainObject(value)) return value;
  if (isStoredPart(value, segments)) return isRemoved(mask) ? undefined : MASKED_TEXT;
  const masked: Record<string, unknown> = { ...value };
  maskMember(masked, segments, mask, pseudonym);
  for (const key of Object.keys(masked)) {
    const behind = key === segments[0] ? null : pathBehind(key, segments);
    if (behind === null) continue;
    const { rest, isPart } = behind;
    if (rest.length > 0) putMasked(masked, key, maskInside(masked[key], rest, mask, pseudonym));
    else maskMember(masked, [key], isPart ? ofPart(mask) : mask, pseudonym);
  }
  return masked;
}

interface PathBehind {
  /** What is left of the path. */
  readonly rest: readonly string[];
  /** Whether the name lies below the path. */
  readonly isPart: boolean;
}

/**
 * What a name leaves of a path: of a path that was stored as one name, dots included, or where a list was stored as an object
 * with numbers as names. Null for a name that is not on the path.
 */
function pathBehind(key: string, segments: readonly string[]): PathBehind | null {
  let rest = segments;
  for (const part of key.split('.')) {
    if (rest.length === 0) return { rest, isPart: true };
    if (part === rest[0]) rest = rest.slice(1);
    else if (!NUMBER.test(part)) return null;
  }
  return { rest, isPart: false };
}

const NUMBER = /^\d+$/;

/** The mask of a part alone: its end or its pseudonym would say more than that of the whole. */
function ofPart(mask: PathMask): PathMask {
  const { kind } = mask.rule;
  return kind === 'mask' || kind === 'hash' ? { ...mask, rule: FULL_MASK } : mask;
}

/** Masks a path inside an object, in the object itself. */
function maskMember(
  target: Record<string, unknown>,
  segments: readonly string[],
  mask: PathMask,
  pseudonym: NamePseudonym,
): void {
  const [name, ...rest] = segments as [string, ...string[]];
  const isThere = Object.hasOwn(target, name);
  const isTyped = typeof target['__type'] === 'string';
  if (!isThere && (isTyped || rest.length > 0)) return;
  const member = isThere ? target[name] : undefined;
  // Moved to the end, as in `maskRow`.
  delete target[name];
  if (rest.length > 0) putMasked(target, name, maskInside(member, rest, mask, pseudonym));
  else if (!isRemoved(mask)) setOwn(target, name, maskValue(member, mask, pseudonym));
}

const isRemoved = ({ rule }: PathMask): boolean => rule.kind === 'drop' || rule.kind === 'deny';

function maskValue(value: unknown, mask: PathMask, pseudonym: NamePseudonym): unknown {
  const { rule } = mask;
  if (rule.kind === 'hash') return pseudonym(value, mask);
  return rule.kind === 'mask' ? keepEnding(value, rule.keep) : MASKED_TEXT;
}

/** The end of a text that is at least twice as long; of a shorter text it would disclose most. */
function keepEnding(value: unknown, keep: number): string {
  if (keep === 0 || (typeof value !== 'string' && typeof value !== 'number')) return MASKED_TEXT;
  const characters = [...String(value)];
  return characters.length < 2 * keep ? MASKED_TEXT : MASKED_TEXT + characters.slice(-keep).join('');
}

/** Characters of base64url: 132 bits, enough to avoid collisions. */
const HASH_LENGTH = 22;
const PREFIX = 'h_';

/** The scope in which equal values have equal pseudonyms: a field or domain, one tenant or all. */
interface PseudonymScope {
  /** Shared by several fields; null: of the field alone. */
  readonly domain: string | null;
  readonly className: string;
  readonly path: string;
  /** Null: no tenant, or shared by all. */
  readonly tenant: string | number | null;
  readonly acrossTenants: boolean;
}

/** Keyed pseudonyms (HMAC-SHA-256). Equal values of a scope have equal pseudonyms; without the key values cannot be guessed. */
export class Pseudonyms {
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  /** A missing value has a pseudonym like any other. */
  of(value: unknown, scope: PseudonymScope): string {
    const { domain, className, path, tenant, acrossTenants } = scope;
    const field = domain === null ? ['field', className, path] : ['domain', domain];
    const owner = acrossTenants ? ['all'] : ['tenant', tenant];
    const text = JSON.stringify([field, owner, sortKeys(value ?? null)]);
    return (
      PREFIX + createHmac('sha256', this.#key).update(text, 'utf8').digest('base64url').slice(0, HASH_LENGTH)
    );
  }
}

/** A canonical form that does not depend on the order of members. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isPlainObject(value)) return value;
  // Wrapped, so that it differs from a list of pairs.
  const members = Object.keys(value).sort();
  return { members: members.map((key) => [key, sortKeys(value[key])]) };
}
