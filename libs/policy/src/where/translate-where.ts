import { type Refusal, Refused, refusals } from '#agent';
import { type ClassAccess, type ClassReach, isRefusal } from '../model/class-access.js';
import { isPlainObject, type PlainObject } from '../model/plain-object.js';
import type { Where } from '../model/where.js';
import { columnOf } from './column-values.js';
import { crossClassCondition, type CrossClassRules, relatedTo } from './cross-class.js';
import { type ConditionRules, fieldConditions } from './field-condition.js';
import { besideCondition } from '../redaction/withheld-inside.js';
import { assertNotWithheld, assertNoTextOfOthers, resolveFieldPath } from './field-path.js';
import { scanWhere } from './scan-where.js';

/** Constraints inside constraints: `$inQuery` in an `$inQuery` in an `$inQuery`. */
const MAX_CROSS_CLASS_LEVELS = 3;
/** Each is a query of its own. */
const MAX_CROSS_CLASS_QUERIES = 16;

export interface WhereOptions {
  /** A bare id on a pointer column of unknown class is refused, not passed on to match nothing. */
  readonly strictPointerShapes: boolean;
  /** `false` for filters that an operator declared: they may name fields outside the allowlist. Default true. */
  readonly checkFields?: boolean;
}

/**
 * A constraint as a caller wrote it, judged and brought to one form: wire names, typed dates and pointers, no two
 * spellings of one field, other classes' queries translated under those classes' own rules.
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
  private readonly verdicts = new Map<string, Refusal | null>();
  private readonly checkFields: boolean;
  private crossClassQueries = 0;

  constructor(
    private readonly reach: ClassReach,
    private readonly options: WhereOptions,
  ) {
    this.checkFields = options.checkFields ?? true;
  }

  constraint(where: unknown, access: ClassAccess, level: number): Where {
    if (where === undefined || where === null) return {};
    if (!isPlainObject(where)) throw refused('A query is an object of field names and conditions');
    scanWhere(where);
    return this.conjunction(where, access, level);
  }

  private conjunction(where: PlainObject, access: ClassAccess, level: number): Where {
    return merged(
      Object.entries(where).flatMap(([key, value]) =>
        key.startsWith('$') ? this.clause(key, value, access, level) : this.field(key, value, access, level),
      ),
    );
  }

  private clause(operator: string, operand: unknown, access: ClassAccess, level: number): Where[] {
    switch (operator) {
      case '$and':
      case '$or':
      case '$nor':
        return [{ [operator]: this.branches(operator, operand, access, level) }];
      case '$relatedTo':
        return [{ $relatedTo: relatedTo(operand, this.crossClass(access, level)) }];
      case '$text':
        return [{ $text: this.textSearch(operand, access) }];
      default:
        throw refused(`Operator '${operator}' needs a field around it`);
    }
  }

  private branches(operator: string, operand: unknown, access: ClassAccess, level: number): Where[] {
    if (!Array.isArray(operand) || operand.length === 0) {
      throw refused(`'${operator}' needs an array of at least one condition`);
    }
    return operand.map((branch) => {
      if (!isPlainObject(branch)) throw refused(`'${operator}' needs an array of objects`);
      return this.conjunction(branch, access, level);
    });
  }

  /** A text index covers columns of its own choosing, so beside an allowlist it would search hidden ones. */
  private textSearch(operand: unknown, access: ClassAccess): Where {
    if (this.checkFields && access.readable !== null) {
      throw new Refused(refusals.fieldDenied('where operator', '$text', '$text', [...access.readable]));
    }
    if (this.checkFields) assertNoTextOfOthers(access);
    const search =
      isPlainObject(operand) && Object.keys(operand).length === 1 ? operand['$search'] : undefined;
    if (typeof search !== 'string') throw refused("'$text' takes an object with $search, a string");
    return { $search: search };
  }

  private field(key: string, value: unknown, access: ClassAccess, level: number): Where[] {
    const path = resolveFieldPath(key, access, 'where field', this.checkFields);
    assertNotWithheld(path, value, access, (className) => this.judgeClass(className));
    const root = columnOf(path.split('.', 1)[0] ?? path, access);
    if (path !== root.path && root.type === 'Pointer') {
      throw refused(
        `'${root.path}' points to another class: compare it with a Pointer, or ask with $inQuery`,
      );
    }
    const conditions = fieldConditions(value, columnOf(path, access), this.conditionRules(access, level));
    if (!this.checkFields || !access.mayHold) return conditions;
    const besides = conditions
      .flatMap((condition) => Object.entries(condition))
      .map(([member, asked]) =>
        besideCondition(member, asked, access, (className) => this.judgeClass(className)),
      );
    return [...conditions, ...distinct(besides)];
  }

  private conditionRules(access: ClassAccess, level: number): ConditionRules {
    return {
      strictPointerShapes: this.options.strictPointerShapes,
      judgeClass: (className) => this.judgeClass(className),
      crossClass: (operator, operand) =>
        crossClassCondition(operator, operand, this.crossClass(access, level)),
    };
  }

  private crossClass(access: ClassAccess, level: number): CrossClassRules {
    if (++this.crossClassQueries > MAX_CROSS_CLASS_QUERIES) {
      throw refused(`A query asks other classes at most ${MAX_CROSS_CLASS_QUERIES} times`);
    }
    if (level >= MAX_CROSS_CLASS_LEVELS) {
      throw refused(`Queries on other classes nest at most ${MAX_CROSS_CLASS_LEVELS} levels deep`);
    }
    return {
      access,
      reach: this.reach,
      checkFields: this.checkFields,
      inner: (where, innerAccess) => this.constraint(where, innerAccess, level + 1),
    };
  }

  /** One verdict per class and query, however many pointers name it. */
  private judgeClass(className: string): Refusal | null {
    const known = this.verdicts.get(className);
    if (known !== undefined) return known;
    const answer = this.reach.reach(className, 'pointer');
    const verdict = isRefusal(answer) ? answer : null;
    this.verdicts.set(className, verdict);
    return verdict;
  }
}

/** Clauses side by side in one object where their keys allow it; spellings that met in one name are ANDed. */
function merged(clauses: readonly Where[]): Where {
  const keys = new Set(clauses.flatMap((clause) => Object.keys(clause)));
  const apart = keys.size === clauses.reduce((sum, clause) => sum + Object.keys(clause).length, 0);
  return apart ? Object.fromEntries(clauses.flatMap((clause) => Object.entries(clause))) : { $and: clauses };
}

/** Conditions on one path have the same to hold beside them. */
function distinct(besides: readonly (Where | null)[]): Where[] {
  return [
    ...new Map(besides.flatMap((where) => (where ? [[JSON.stringify(where), where] as const] : []))).values(),
  ];
}

function refused(message: string): Refused {
  return new Refused(refusals.invalidQuery(message));
}
