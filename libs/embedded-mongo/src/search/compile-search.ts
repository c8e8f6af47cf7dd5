import { getField, isDocument, type Document } from '../bson/document.js';
import { searchFault, searchLack } from './faults.js';
import {
  onlyMembers,
  wholeMember,
  type SearchOperatorCompiler,
  applyScore,
  type SearchOperator,
} from './operator.js';
import { autocomplete, equals, exists, phrase, text } from './text-operators.js';

const LISTS = ['must', 'mustNot', 'should', 'filter'] as const;
/** Compounds inside compounds. */
const MAX_DEPTH = 20;

const operators: Readonly<Record<string, SearchOperatorCompiler>> = {
  text,
  phrase,
  autocomplete,
  exists,
  equals,
};

/** Operators of Atlas Search that this server does not have. */
const lacking = new Set(
  'embeddedDocument facet geoShape geoWithin hasAncestor hasRoot in knnBeta moreLikeThis near queryString range regex returnScope span vectorSearch wildcard'.split(
    ' ',
  ),
);

/**
 * The one operator among the members of a search, those of the stage itself left out. Errors: 8 when there is none, or
 * more than one; 238 for operators that are not here.
 */
export function compileOperator(
  spec: Document,
  stageMembers: readonly string[] = [],
  depth = 0,
): SearchOperator {
  const names = Object.keys(spec).filter((name) => !stageMembers.includes(name));
  const [name] = names;
  if (name === undefined || names.length > 1) throw searchFault('one operator is required in a search');
  const inner = getField(spec, name);
  if (name !== 'compound' && !Object.hasOwn(operators, name)) {
    throw lacking.has(name)
      ? searchLack(`the operator ${name}`)
      : searchFault(`unrecognized field "${name}"`);
  }
  if (!isDocument(inner)) throw searchFault(`"${name}" must be a document`);
  const compiled =
    name === 'compound' ? compound(inner, depth) : (operators[name] as SearchOperatorCompiler)(inner);
  return applyScore(inner, compiled);
}

function compound(spec: Document, depth: number): SearchOperator {
  if (depth >= MAX_DEPTH) throw searchFault('"compound" is nested too deeply');
  onlyMembers(spec, 'compound', [...LISTS, 'minimumShouldMatch']);
  const clauses = (name: (typeof LISTS)[number]): SearchOperator[] => {
    const given = getField(spec, name);
    const list: readonly unknown[] = given === undefined ? [] : Array.isArray(given) ? given : [given];
    return list.map((clause) => {
      if (!isDocument(clause)) throw searchFault(`"compound.${name}" must hold operators`);
      return compileOperator(clause, [], depth + 1);
    });
  };
  const [must, mustNot, should, filter] = LISTS.map(clauses) as [
    SearchOperator[],
    SearchOperator[],
    SearchOperator[],
    SearchOperator[],
  ];
  const shown = [...must, ...should, ...filter];
  if (shown.length + mustNot.length === 0) throw searchFault('"compound" must have at least one clause');
  const least = leastShould(spec, must.length + filter.length + mustNot.length === 0 ? 1 : 0, should.length);
  return {
    hits: (path, term) => shown.some((clause) => clause.hits(path, term)),
    over: (corpus) => {
      const over = (list: readonly SearchOperator[]) => list.map((clause) => clause.over(corpus));
      const [required, banned, wished, filters] = [over(must), over(mustNot), over(should), over(filter)];
      return (doc) => {
        if (banned.some((match) => match(doc) !== null)) return null;
        if (filters.some((match) => match(doc) === null)) return null;
        let score = 0;
        for (const match of required) {
          const own = match(doc);
          if (own === null) return null;
          score += own;
        }
        let met = 0;
        for (const match of wished) {
          const own = match(doc);
          if (own === null) continue;
          met += 1;
          score += own;
        }
        return met >= least ? score : null;
      };
    },
  };
}

function leastShould(spec: Document, fallback: number, clauses: number): number {
  if (getField(spec, 'minimumShouldMatch') === undefined) return fallback;
  return Math.max(wholeMember(spec, 'minimumShouldMatch', 'compound', 0, [0, clauses]), fallback);
}
