import { suggestNames } from '../model/field-names.js';
import { cutText, type Refusal, refuse, setOwn } from '#core';
import { assertNotInsideFlat, besideCondition } from '../masking/withheld-objects.js';
import {
  assertFieldPath,
  assertNoTextOfOthers,
  assertNotWithheld,
  type ClassAccess,
  type ClassReach,
  isRefusal,
  listNameable,
  resolveFieldPath,
} from '../model/class-access.js';
import { type Note, noteColumn } from '../model/value-type.js';
import { blockFilter, isPlainObject, isScalar, type PlainObject, type Where } from '../model/where.js';
import { readObjectText, readWrittenValues, refuseTornText } from '../model/written-values.js';
import {
  crossClassCondition,
  type CrossClassRules,
  parseRelatedTo,
  relationConditions,
} from './cross-class.js';
import { checkPath, columnAt } from './column-values.js';
import { assertNoBareLogic, type ConditionRules, fieldConditions } from './field-condition.js';
import { findOtherWord } from './other-words.js';

/** The maximum nesting of cross-class queries: `$inQuery` in an `$inQuery` in an `$inQuery`. */
const MAX_CROSS_CLASS_LEVELS = 3;
/** Each is a separate database query. */
const MAX_CROSS_CLASS_QUERIES = 16;

export interface WhereOptions {
  /** Refuses a bare id on a pointer column of unknown class, which would match nothing. */
  readonly strictPointerShapes: boolean;
  /** `false` for filters of the operator: they may name fields outside the allowlist. Default true. */
  readonly checkFields?: boolean;
  /** Texts that are compared as they are, and never read as a pointer (`Class$id`). Default none. */
  readonly literals?: ReadonlySet<string>;
  /** A text that stands for a value that is not known yet. Default: there is none. */
  readonly unchecked?: string | undefined;
  /** Takes remarks for the answer. Default: none are made. */
  readonly note?: Note | undefined;
}

/**
 * Checks and normalises the constraint of a caller: wire names, typed dates and pointers, one spelling per field, and cross-class
 * queries translated under the rules of their classes.
 * @throws Refused `invalid_query`, `security_blocked`, `access_denied`, `pointer_shape_mismatch`
 */
export function translateWhere(
  where: unknown,
  access: ClassAccess,
  reach: ClassReach,
  options: WhereOptions,
): Where {
  return new Translation(reach, options).constraint(where, access, 0);
}

class Translation {
  private verdicts: Map<string, Refusal | null> | undefined;
  private readonly checkFields: boolean;
  private crossClassQueries = 0;

  constructor(
    private readonly reach: ClassReach,
    private readonly options: WhereOptions,
  ) {
    this.checkFields = options.checkFields ?? true;
  }

  constraint(written: unknown, access: ClassAccess, level: number): Where {
    if (written === undefined || written === null) return {};
    const where = readWrittenValues(typeof written === 'string' ? readObjectText(written) : written);
    if (level === 0) refuseTornText(where, 'where');
    if (!isPlainObject(where)) {
      const instead = typeof written === 'string' ? ', not text, such as {"name":"value"}' : '';
      throw refuse.invalidQuery(`A query is an object of field names and conditions${instead}`);
    }
    scanWhere(where);
    return this.conjunction(where, access, level);
  }

  private conjunction(where: PlainObject, access: ClassAccess, level: number): Where {
    const clauses: Where[] = [];
    for (const key of Object.keys(where)) {
      const value = where[key];
      clauses.push(
        ...(key.startsWith('$')
          ? this.clause(key, value, access, level)
          : this.field(key, value, access, level)),
      );
    }
    return mergeClauses(clauses);
  }

  private clause(operator: string, operand: unknown, access: ClassAccess, level: number): Where[] {
    switch (operator) {
      case '$and':
      case '$or':
      case '$nor':
        return [{ [operator]: this.branches(operator, operand, access, level) }];
      case '$relatedTo':
        return [{ $relatedTo: parseRelatedTo(operand, this.crossClass(access, level)) }];
      case '$text':
        return [{ $text: this.textSearch(operand, access) }];
      default:
        throw refuse.invalidQuery(`Operator '${operator}' needs a field around it`);
    }
  }

  private branches(operator: string, operand: unknown, access: ClassAccess, level: number): Where[] {
    if (!Array.isArray(operand) || operand.length === 0) {
      throw refuse.invalidQuery(`'${operator}' needs an array of at least one condition`);
    }
    return operand.map((branch) => {
      if (!isPlainObject(branch)) throw refuse.invalidQuery(`'${operator}' needs an array of objects`);
      return this.conjunction(branch, access, level);
    });
  }

  /** A text index may cover hidden columns: refused for a class with an allowlist. */
  private textSearch(operand: unknown, access: ClassAccess): Where {
    if (this.checkFields && access.readable !== null) {
      throw refuse.fieldDenied('where operator', '$text', '$text', listNameable(access));
    }
    if (this.checkFields) assertNoTextOfOthers(access);
    const search =
      isPlainObject(operand) && Object.keys(operand).length === 1 ? operand['$search'] : undefined;
    if (typeof search === 'string') return { $search: search };
    const { $term: term, ...options } = isPlainObject(search) ? search : {};
    const isOption = ([name, value]: [string, unknown]) =>
      name === '$language' ? typeof value === 'string' : TEXT_FLAGS.has(name) && typeof value === 'boolean';
    if (typeof term !== 'string' || !Object.entries(options).every(isOption))
      throw refuse.invalidQuery(
        "'$text' takes an object with $search: a text, or $term with $language, $caseSensitive, $diacriticSensitive",
      );
    return { $search: term, ...options };
  }

  private field(key: string, value: unknown, access: ClassAccess, level: number): Where[] {
    // Parse SDKs write a search for words under a field, and it covers the index of the class all the same.
    if (isPlainObject(value) && '$text' in value) {
      const { $text, ...others } = value;
      const rest = Object.keys(others).length > 0 ? this.field(key, others, access, level) : [];
      resolveFieldPath(key, access, 'where field', this.checkFields);
      return [{ $text: this.textSearch($text, access) }, ...rest];
    }
    if (Array.isArray(value)) assertNoBareLogic(key, value, access);
    const path = resolveFieldPath(key, access, 'where field', this.checkFields);
    assertNotWithheld(path, value, access, (className) => this.judgeClass(className));
    checkPath(path, access, this.options.note);
    const column = columnAt(path, access);
    noteColumn(path, access, this.options.note);
    const rules = this.conditionRules(access, level);
    // A relation has no value of its own.
    if (column.type === 'Relation')
      return relationConditions(value, column, rules, () => this.crossClass(access, level));
    const conditions = fieldConditions(value, column, rules);
    if (!this.checkFields || !(access.flat || access.mayHold)) return conditions;
    const besides = conditions
      .flatMap((condition) => Object.entries(condition))
      .map(([member, asked]) => {
        assertNotInsideFlat(member, access);
        return besideCondition(member, asked, access, (className) => this.judgeClass(className));
      });
    return [...conditions, ...distinct(besides)];
  }

  private conditionRules(access: ClassAccess, level: number): ConditionRules {
    return {
      strictPointerShapes: this.options.strictPointerShapes,
      ...(this.options.literals && { literals: this.options.literals }),
      note: this.options.note,
      unchecked: this.options.unchecked,
      judgeClass: (className) => this.judgeClass(className),
      crossClass: (operator, operand) =>
        crossClassCondition(operator, operand, this.crossClass(access, level)),
    };
  }

  private crossClass(access: ClassAccess, level: number): CrossClassRules {
    if (++this.crossClassQueries > MAX_CROSS_CLASS_QUERIES) {
      throw refuse.invalidQuery(`A query asks other classes at most ${MAX_CROSS_CLASS_QUERIES} times`);
    }
    if (level >= MAX_CROSS_CLASS_LEVELS) {
      throw refuse.invalidQuery(
        `Queries on other classes nest at most ${MAX_CROSS_CLASS_LEVELS} levels deep`,
      );
    }
    return {
      access,
      reach: this.reach,
      checkFields: this.checkFields,
      inner: (where, innerAccess) => this.constraint(where, innerAccess, level + 1),
    };
  }

  /** Cached: one verdict per class and query. */
  private judgeClass(className: string): Refusal | null {
    const verdicts = (this.verdicts ??= new Map());
    const known = verdicts.get(className);
    if (known !== undefined) return known;
    const answer = this.reach.reach(className, 'pointer');
    const verdict = isRefusal(answer) ? answer : null;
    verdicts.set(className, verdict);
    return verdict;
  }
}

/** All clauses in one object when their keys are distinct, else combined with `$and`. */
function mergeClauses(clauses: readonly Where[]): Where {
  const [only] = clauses;
  if (only && clauses.length === 1) return only;
  const all: Record<string, unknown> = {};
  for (const clause of clauses)
    for (const key of Object.keys(clause)) {
      if (Object.hasOwn(all, key)) return { $and: clauses };
      setOwn(all, key, clause[key]);
    }
  return all;
}

/** Conditions on one path share the same additional filter. */
function distinct(besides: readonly (Where | null)[]): Where[] {
  return [
    ...new Map(besides.flatMap((where) => (where ? [[JSON.stringify(where), where] as const] : []))).values(),
  ];
}

const MAX_DEPTH = 8;
/** The maximum number of fields and operators in one constraint. */
const MAX_MEMBERS = 1000;

const TEXT_FLAGS = new Set(['$caseSensitive', '$diacriticSensitive']);

const CODE_EXECUTION = new Set(['$where', '$function', '$accumulator', '$expr']);

const CROSS_CLASS = ['$inQuery', '$notInQuery', '$select', '$dontSelect', '$relatedTo'] as const;

/** All operators of a `where`, in the order of the refusal text. */
export const SCANNED_OPERATORS: readonly string[] = [
  '$lt $lte $gt $gte $ne $eq $exists',
  '$in $nin $all $containedIn $containedBy $containsAll',
  '$regex $options $text $search $term $language $caseSensitive $diacriticSensitive',
  '$near $nearSphere $within $geoWithin $geoIntersects $centerSphere $box $polygon $point $geometry',
  '$maxDistance $maxDistanceInMiles $maxDistanceInKilometers $maxDistanceInRadians',
  '$or $and $nor',
  CROSS_CLASS.join(' '),
].flatMap((group) => group.split(' '));
const KNOWN_OPERATORS = new Set(SCANNED_OPERATORS);

const OWN_DEPTH = new Set<string>(CROSS_CLASS);

/**
 * The rules that apply at any depth, checked before a constraint is translated: no code, no unknown operator, no internal column,
 * at most 8 levels, JSON values only.
 */
export function scanWhere(where: PlainObject): void {
  const budget: Budget = { left: MAX_MEMBERS };
  for (const [key, value] of Object.entries(where)) scanMember(key, value, 1, budget);
}

interface Budget {
  left: number;
}

function scanMember(key: string, value: unknown, depth: number, budget: Budget): void {
  budget.left -= 1;
  if (budget.left < 0) {
    throw refuse.invalidQuery(`Query exceeds ${MAX_MEMBERS} fields and operators`);
  }
  if (!key.startsWith('$')) {
    assertFieldPath(key);
  } else if (CODE_EXECUTION.has(key)) {
    throw blockFilter('where', 'code_execution', key);
  } else if (!KNOWN_OPERATORS.has(key)) {
    const instead = findOtherWord(key) ?? suggestNames(key, SCANNED_OPERATORS)[0];
    throw refuse.invalidQuery(
      `Unknown query operator '${cutText(key, 64)}'. Allowed operators: ${SCANNED_OPERATORS.join(', ')}` +
        (instead === undefined ? '' : `. Write ${instead} instead`),
    );
  }
  // A cross-class query is scanned when it is translated, with its own depth.
  if (!OWN_DEPTH.has(key)) scanValue(value, depth, budget);
}

function scanValue(value: unknown, depth: number, budget: Budget): void {
  if (isScalar(value) || value instanceof Date) return;
  if (depth > MAX_DEPTH) {
    throw refuse.invalidQuery(`Query exceeds maximum depth of ${MAX_DEPTH}`);
  }
  if (Array.isArray(value)) {
    for (const element of value) scanValue(element, depth + 1, budget);
  } else if (isPlainObject(value)) {
    for (const [key, member] of Object.entries(value)) scanMember(key, member, depth + 1, budget);
  } else {
    throw refuse.invalidQuery(
      'A query holds only strings, finite numbers, booleans, null, arrays and objects',
    );
  }
}
