import { Binary } from 'bson';
import { compareValues } from '../bson/compare.js';
import { type Document, getField, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { typeName } from '../bson/type-name.js';
import { editDistance, listTerms, onePath, type SearchPath, searchPaths } from './corpus.js';
import type { Fuzziness, HitTest, SearchOperator, SearchOperatorCompiler } from './operator.js';
import { applyScore, fuzziness, onlyMembers, queryTexts, wholeMember } from './operator.js';
import { searchFault, searchLack } from '../errors.js';

/** How well a stored word stands for one looked for: 1 the same, less with every edit, 0 not at all. */
function likeness(stored: string, wanted: string, fuzzy: Fuzziness | null): number {
  if (stored === wanted) return 1;
  if (!fuzzy || stored.slice(0, fuzzy.prefixLength) !== wanted.slice(0, fuzzy.prefixLength)) return 0;
  const edits = editDistance(stored, wanted, fuzzy.maxEdits);
  return edits > fuzzy.maxEdits ? 0 : Math.max(0.1, 1 - edits / Math.min(stored.length, wanted.length));
}

const within =
  (paths: readonly SearchPath[], isHit: (term: string) => boolean): HitTest =>
  (path, term) =>
    isHit(term) && paths.some(({ name }) => name === path || name.startsWith('*:'));

/** Any, or with `matchCriteria: "all"` every, word of the query. */
const text: SearchOperatorCompiler = (spec) => {
  onlyMembers(spec, 'text', ['query', 'path', 'fuzzy', 'matchCriteria']);
  const paths = searchPaths(getField(spec, 'path'), 'text');
  const wanted = [...new Set(queryTexts(spec, 'text').flatMap(listTerms))];
  const fuzzy = fuzziness(spec, 'text');
  const criteria = getField(spec, 'matchCriteria') ?? 'any';
  if (criteria !== 'any' && criteria !== 'all')
    throw searchFault('"text.matchCriteria" must be one of [all, any]');
  return {
    hits: within(paths, (term) => wanted.some((word) => likeness(term, word, fuzzy) > 0)),
    over: (corpus) => (doc) => {
      let score = 0;
      const met = new Set<string>();
      for (const path of paths) {
        const counts = new Map<string, number>();
        for (const term of corpus.terms(doc, path)) counts.set(term, (counts.get(term) ?? 0) + 1);
        for (const [term, count] of counts) {
          for (const word of wanted) {
            const like = likeness(term, word, fuzzy);
            if (like === 0) continue;
            met.add(word);
            score += like * corpus.score(doc, path, term, count);
          }
        }
      }
      return met.size > 0 && (criteria === 'any' || met.size === wanted.length) ? score : null;
    },
  };
};

/** The words of the query next to each other, in their order. */
const phrase: SearchOperatorCompiler = (spec) => {
  onlyMembers(spec, 'phrase', ['query', 'path', 'slop']);
  const paths = searchPaths(getField(spec, 'path'), 'phrase');
  const slop = getField(spec, 'slop') ?? 0;
  if (numberKind(slop) === undefined || toDouble(slop) !== 0) throw searchLack('the slop of a phrase');
  const phrases = queryTexts(spec, 'phrase')
    .map(listTerms)
    .filter((terms) => terms.length > 0);
  const words = new Set(phrases.flat());
  return {
    hits: within(paths, (term) => words.has(term)),
    over: (corpus) => (doc) => {
      let score: number | null = null;
      for (const path of paths) {
        const stored = corpus.terms(doc, path);
        for (const wanted of phrases) {
          const count = occurrences(stored, wanted);
          if (count === 0) continue;
          for (const term of wanted) score = (score ?? 0) + corpus.score(doc, path, term, count);
        }
      }
      return score;
    },
  };
};

const occurrences = (stored: readonly string[], wanted: readonly string[]): number =>
  stored.filter((_, at) => wanted.every((term, offset) => stored[at + offset] === term)).length;

/** Every word of the query begins a word of the field; in that order with `tokenOrder: "sequential"`. */
const autocomplete: SearchOperatorCompiler = (spec) => {
  onlyMembers(spec, 'autocomplete', ['query', 'path', 'fuzzy', 'tokenOrder']);
  const path = onePath(spec, 'autocomplete');
  const queries = queryTexts(spec, 'autocomplete').map(listTerms);
  const fuzzy = fuzziness(spec, 'autocomplete');
  const order = getField(spec, 'tokenOrder') ?? 'any';
  if (order !== 'any' && order !== 'sequential')
    throw searchFault('"autocomplete.tokenOrder" must be one of [any, sequential]');
  const edits = fuzzy?.maxEdits ?? 0;
  const lengths = Array.from({ length: 2 * edits + 1 }, (_, i) => i - edits);
  const begins = (stored: string, word: string) =>
    Math.max(...lengths.map((more) => likeness(stored.slice(0, word.length + more), word, fuzzy)));
  return {
    hits: within([path], (term) => queries.flat().some((word) => begins(term, word) > 0)),
    over: (corpus) => (doc) => {
      const stored = corpus.terms(doc, path);
      const scores = queries.map((words) =>
        order === 'any' ? anywhere(stored, words, begins) : inOrder(stored, words, begins),
      );
      const best = Math.max(...scores);
      return best > 0 ? best : null;
    },
  };
};

type Begins = (stored: string, word: string) => number;

/** What is typed in full counts more than what only begins a long word, and a shorter field more than a longer one. */
const completeness = (stored: string, word: string, like: number) =>
  like * (0.5 + word.length / (2 * Math.max(stored.length, word.length)));

function anywhere(stored: readonly string[], words: readonly string[], begins: Begins): number {
  const best = words.map((word) =>
    Math.max(0, ...stored.map((term) => completeness(term, word, begins(term, word)))),
  );
  return best.includes(0) ? 0 : sum(best) / (1 + stored.length / 100);
}

function inOrder(stored: readonly string[], words: readonly string[], begins: Begins): number {
  const starts = stored.map((_, at) =>
    words.map((word, offset) => {
      const term = stored[at + offset];
      return term === undefined ? 0 : completeness(term, word, begins(term, word));
    }),
  );
  return Math.max(0, ...starts.filter((found) => !found.includes(0)).map(sum)) / (1 + stored.length / 100);
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/** Documents with a value that `fits` at the path; there is nothing to score or to mark. */
const compileFinder = (spec: Document, name: string, fits: (value: unknown) => boolean): SearchOperator => {
  const path = onePath(spec, name);
  return { hits: () => false, over: () => (doc) => (path.values(doc).some(fits) ? 1 : null) };
};

/** Documents that have the field. */
const exists: SearchOperatorCompiler = (spec) => {
  onlyMembers(spec, 'exists', ['path']);
  return compileFinder(spec, 'exists', (value) => value !== undefined);
};

const COMPARED_TYPES = new Set('bool date double int long null objectId string'.split(' '));

/** Documents whose field holds exactly this value; numbers as doubles, and none that is not finite. */
const equals: SearchOperatorCompiler = (spec) => {
  onlyMembers(spec, 'equals', ['path', 'value', 'doesNotAffect']);
  const wanted = getField(spec, 'value');
  const isUuid = wanted instanceof Binary && wanted.sub_type === Binary.SUBTYPE_UUID;
  if (!isUuid && !COMPARED_TYPES.has(typeName(wanted)))
    throw searchFault('"equals.value" must be a boolean, number, date, string, ObjectId, UUID or null');
  const form = (value: unknown): unknown => (numberKind(value) === undefined ? value : toDouble(value));
  const sought = form(wanted);
  const findable = typeof sought !== 'number' || Number.isFinite(sought);
  return compileFinder(
    spec,
    'equals',
    (value) => findable && value !== undefined && compareValues(form(value), sought) === 0,
  );
};

const LISTS = ['must', 'mustNot', 'should', 'filter'] as const;
/** Compounds inside compounds. */
const MAX_DEPTH = 20;

type Operators = Readonly<Record<string, SearchOperatorCompiler>>;
const operators: Operators = { text, phrase, autocomplete, exists, equals };
/** Operators of Atlas Search that this server does not have. */
const LACKING =
  'embeddedDocument facet geoShape geoWithin hasAncestor hasRoot in knnBeta moreLikeThis near queryString range regex returnScope span term vectorSearch wildcard';
const lacking = new Set(LACKING.split(' '));

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
  if (name !== 'compound' && !Object.hasOwn(operators, name))
    throw lacking.has(name)
      ? searchLack(`the operator ${name}`)
      : searchFault(`unrecognized field "${name}"`);
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
  const [must, mustNot] = [clauses('must'), clauses('mustNot')];
  const [should, filter] = [clauses('should'), clauses('filter')];
  const shown = [...must, ...should, ...filter];
  if (shown.length + mustNot.length === 0) throw searchFault('"compound" must have at least one clause');
  const least = leastShould(spec, must.length + filter.length + mustNot.length === 0 ? 1 : 0, should.length);
  return {
    hits: (path, term) => shown.some((clause) => clause.hits(path, term)),
    over: (corpus) => {
      const over = (list: readonly SearchOperator[]) => list.map((clause) => clause.over(corpus));
      const [required, banned, wished, filters] = [over(must), over(mustNot), over(should), over(filter)];
      return (doc) => {
        if (banned.some((match) => match(doc) !== null) || filters.some((match) => match(doc) === null))
          return null;
        const needed = required.map((match) => match(doc));
        const met = wished.map((match) => match(doc)).filter((own) => own !== null);
        const scores = [...needed, ...met];
        return met.length < least || needed.includes(null) ? null : sum(scores.map(Number));
      };
    },
  };
}

function leastShould(spec: Document, fallback: number, clauses: number): number {
  if (getField(spec, 'minimumShouldMatch') === undefined) return fallback;
  return Math.max(wholeMember(spec, 'minimumShouldMatch', 'compound', 0, [0, clauses]), fallback);
}
