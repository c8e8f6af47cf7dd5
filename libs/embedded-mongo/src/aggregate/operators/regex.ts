import { codePoints } from '../../bson/code-points.js';
import { BSONRegExp } from 'bson';
import { mongoError } from '../../errors.js';
import { typeName } from '../../bson/type-name.js';
import { compileRegex, isRegex, type CompiledRegex, type RegexMatch } from '../../query/regex.js';
import { nullish, type Builder, type OperatorCompiler, type OperatorTable } from '../evaluate.js';
import { named } from '../arguments.js';

interface Search {
  readonly text: string;
  readonly regex: CompiledRegex;
}

/** An operator of `{input, regex, options}`; `search` is undefined when input or pattern is null. */
const compileSearch = (answer: (search: Search | undefined, builder: Builder) => unknown): OperatorCompiler =>
  named(['input', 'regex'], ['options'], ({ input: text, regex, options }, name, builder) => {
    if (!nullish(text) && typeof text !== 'string')
      throw mongoError(51104, `${name} needs 'input' to be of type string, found: ${typeName(text)}`);
    if (!nullish(regex) && typeof regex !== 'string' && !isRegex(regex))
      throw mongoError(51105, `${name} needs 'regex' to be of type string or regex`);
    if (!nullish(options) && typeof options !== 'string')
      throw mongoError(51106, `${name} needs 'options' to be of type string`);
    if (!nullish(options) && regex instanceof BSONRegExp && regex.options !== '') {
      throw mongoError(51107, `${name}: found regex options specified in both 'regex' and 'options' fields`);
    }
    const compiled = nullish(regex) ? undefined : compileRegex(regex, options ?? undefined);
    return answer(typeof text === 'string' && compiled ? { text, regex: compiled } : undefined, builder);
  });

const describe = (match: RegexMatch, idx: number): object => ({
  match: match.text,
  idx,
  captures: match.captures,
});

const find = (found: Search | undefined): object | null => {
  const match = found?.regex.exec(found.text, 0);
  return found && match ? describe(match, codePoints(found.text.slice(0, match.index)).length) : null;
};

function findAll(found: Search | undefined, { ctx }: Builder): object[] {
  const matches: object[] = [];
  if (!found) return matches;
  let from = 0;
  let counted = { position: 0, points: 0 };
  do {
    ctx.tick();
    const match = found.regex.exec(found.text, from);
    if (!match) break;
    // Counted on from the last match, so that many matches do not count the text many times.
    const points = counted.points + codePoints(found.text.slice(counted.position, match.index)).length;
    counted = { position: match.index, points };
    matches.push(describe(match, points));
    from = match.index + (match.text.length || 1);
  } while (from < found.text.length);
  return matches;
}

export const regexOperators: OperatorTable = {
  $regexMatch: compileSearch((found) => found !== undefined && found.regex.test(found.text)),
  $regexFind: compileSearch(find),
  $regexFindAll: compileSearch(findAll),
};
