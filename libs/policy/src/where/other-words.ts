/** Operators of other query languages, and what is written here in their place. */
const OTHER_WORDS: ReadonlyMap<string, string> = new Map([
  ...['like', 'ilike', 'contains', 'icontains', 'match', 'matches', 'startswith', 'endswith'].map(
    (word) => [word, '$regex'] as const,
  ),
  ['between', '$gte and $lte'],
  ...['=', '==', '===', 'is', 'equal', 'equals'].map((word) => [word, '$eq'] as const),
  ...['!=', '<>', 'neq', 'notequal', 'notequals'].map((word) => [word, '$ne'] as const),
  ...['>', 'after', 'greaterthan'].map((word) => [word, '$gt'] as const),
  ...['>=', 'from', 'since', 'start', 'min'].map((word) => [word, '$gte'] as const),
  ...['<', 'before', 'lessthan', 'until', 'to', 'end'].map((word) => [word, '$lt'] as const),
  ...['<=', 'max'].map((word) => [word, '$lte'] as const),
  ['not', '$ne, $nin or {"$nor":[{…}]}'],
  ['notin', '$nin'],
  ['isnull', 'null, as the value of the field,'],
  ['isnotnull', '{"$ne":null}'],
  ['geonear', '$nearSphere'],
  ['size', '{"FIELD":[]} for an empty list, or $size in a $match of aggregate,'],
  ['elemmatch', 'paths to members ("lines.sku"), or $elemMatch in a $match of aggregate,'],
]);

const toWord = (word: string): string => word.toLowerCase().replaceAll(/[$_ ]/g, '');

const OF_LISTS: ReadonlySet<string> = new Set(['size', 'elemmatch']);

/** Whether a word, in any spelling, asks for lists. */
export const isOfLists = (word: string): boolean => OF_LISTS.has(toWord(word));

/** What is written here in the place of a word, with or without `$`, in any spelling. */
export const findOtherWord = (word: string): string | undefined => OTHER_WORDS.get(toWord(word));
