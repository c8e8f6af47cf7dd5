import {
  type Arguments,
  integer,
  oneOf,
  optionalObject,
  optionalString,
  refuseArgument,
} from '../arguments/argument-readers.js';
import { type ChunkSize, MAX_CHUNKS } from './chunks.js';

/** Characters that a token stands for, where sizes are given in tokens. */
const CHARACTERS_PER_TOKEN = 4;
const SIZE = { default: 800, min: 1, max: 100_000 };
const OVERLAP = { default: 100, min: 0, max: 100_000 };
const TOTAL_TOKENS = { default: 20_000, min: 0, max: 10_000_000 };

export interface SemanticOptions {
  readonly chunk: ChunkSize;
  readonly chunksPerDocument: number;
  readonly totalTokens: number;
  readonly filters: {
    readonly filter?: Arguments | undefined;
    readonly vectorFilter?: Arguments | undefined;
  };
}

/** Other spellings that are understood, and not declared. */
export function withAliases(args: Arguments): Arguments {
  const alias = (name: string, ...others: string[]) => {
    const found = [name, ...others].find((one) => Object.hasOwn(args, one));
    return found === undefined ? {} : { [name]: args[found] };
  };
  return {
    ...args,
    ...alias('class_name', 'class', 'klass'),
    ...alias('chunk_size', 'size'),
    ...alias('chunk_overlap', 'overlap'),
    ...alias('chunk_by', 'by'),
  };
}

export function semanticOptions(args: Arguments): SemanticOptions {
  const unit = oneOf(args, 'chunk_by', ['chars', 'tokens'], 'chars') === 'tokens' ? CHARACTERS_PER_TOKEN : 1;
  const size = integer(args, 'chunk_size', SIZE);
  const given = optional(args, 'chunk_overlap') ? integer(args, 'chunk_overlap', OVERLAP) : undefined;
  // The usual overlap would swallow chunks smaller than itself.
  const overlap = given ?? Math.min(OVERLAP.default, Math.floor(size / 8));
  if (overlap >= size) refuseArgument('chunk_overlap must be less than chunk_size');
  return {
    chunk: { size: size * unit, overlap: overlap * unit },
    chunksPerDocument: integer(args, 'max_chunks_per_document', {
      default: MAX_CHUNKS,
      min: 1,
      max: MAX_CHUNKS,
    }),
    totalTokens: integer(args, 'max_total_tokens', TOTAL_TOKENS),
    filters: {
      filter: optionalObject(args, 'filter'),
      vectorFilter: optionalObject(args, 'vector_filter'),
    },
  };
}

const optional = (args: Arguments, name: string): boolean => Object.hasOwn(args, name) && args[name] !== null;

/** The text to hand back: the first one that the vector stands for, unless another of them is named. */
export function chosenText(
  args: Arguments,
  textFields: readonly string[],
  wireName: (name: string) => string,
): string {
  const named = optionalString(args, 'text_field');
  const [first] = textFields;
  if (first === undefined)
    return refuseArgument('this class has no readable text that its vector stands for');
  if (named === undefined || named === '') return first;
  const field = wireName(named);
  if (textFields.includes(field)) return field;
  return refuseArgument(`text_field must be one of ${textFields.join(', ')}`);
}
