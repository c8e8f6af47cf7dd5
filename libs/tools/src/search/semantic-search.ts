import { Inject, Injectable, Optional } from '@nestjs/common';
import { refuse } from '#core';
import { type VectorFilters, QueryEmbeddings, type SearchHit } from '#data';
import { Alias } from '#schema';
import { admitsSearchedClass, refuseArgument } from '../arguments/argument-class.js';
import {
  Choice,
  ClassName,
  GivenText,
  JsonObject,
  ResultCount,
  Text,
  WholeNumber,
} from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { BOOLEAN, INTEGER, listOf, mapOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { simplifyRow } from '../shaping/presented-rows.js';
import { READS_AND_EMBEDS, type ToolCall } from '../tool.js';
import { MAY_LACK_ROWS, searchText } from './found-rows.js';

/** Maximum number of chunks of one document. */
export const MAX_CHUNKS = 200;

interface ChunkSize {
  /** Characters. */
  readonly size: number;
  /** Characters that a chunk repeats from the previous one; less than `size`. */
  readonly overlap: number;
}

interface Chunked {
  readonly chunks: readonly string[];
  /** The text was longer than the chunks. */
  readonly truncated: boolean;
}

/** Splits a text into chunks of equal size, none of which splits a character. */
export function chunkText(text: string, { size, overlap }: ChunkSize, most = MAX_CHUNKS): Chunked {
  const characters = [...text];
  const chunks: string[] = [];
  for (let at = 0; at < characters.length; at += size - overlap) {
    if (chunks.length === most) return { chunks, truncated: true };
    chunks.push(characters.slice(at, at + size).join(''));
    if (at + size >= characters.length) break;
  }
  return { chunks, truncated: false };
}

export const estimateTokens = (text: string): number => Math.ceil(text.length / 4);

/** As many of the first entries as fit, at least one. @param most tokens; 0: no limit */
export function withinBudget<T extends { readonly content: string }>(
  ranked: readonly T[],
  most: number,
): readonly T[] {
  if (most === 0) return ranked;
  let spent = 0;
  const over = ranked.findIndex(({ content }) => (spent += estimateTokens(content)) > most);
  return over < 0 ? ranked : ranked.slice(0, Math.max(over, 1));
}

/** Characters per token, where sizes are given in tokens. */
const CHARACTERS_PER_TOKEN = 4;
const DEFAULT_OVERLAP = 100;
const UNITS = ['chars', 'tokens'] as const;

class SemanticSearchArguments {
  static readonly admission = admitsSearchedClass;

  @ClassName() @Alias('class', 'klass') class_name!: string;
  @GivenText('What to look for, in your own words.') query!: string;
  @ResultCount(20, 'Default 5, max 20.') k = 5;
  @JsonObject("Constraint on the rows found, over the class's filter fields.")
  filter?: Readonly<Record<string, unknown>>;
  @JsonObject('The same, applied before rows are ranked.')
  vector_filter?: Readonly<Record<string, unknown>>;
  @Text('Which of the embedded texts to hand back. Default: the first.') text_field?: string;
  @WholeNumber({ min: 1, max: 100_000 }, 'Default 800.') @Alias('size') chunk_size = 800;
  @WholeNumber({ min: 0, max: 100_000 }, 'Default 100; less than chunk_size.')
  @Alias('overlap')
  chunk_overlap?: number;
  @Choice(UNITS) @Alias('by') chunk_by: (typeof UNITS)[number] = 'chars';
  @WholeNumber({ min: 1, max: MAX_CHUNKS }, 'At most 200.') max_chunks_per_document = MAX_CHUNKS;
  @WholeNumber({ min: 0, max: 10_000_000 }, 'Default 20000; 0: no limit.') max_total_tokens = 20_000;
}

interface SemanticOptions {
  readonly chunk: ChunkSize;
  readonly chunksPerDocument: number;
  readonly filters: VectorFilters;
}

interface Chunk {
  readonly id: string;
  readonly score?: number;
  readonly content: string;
  readonly metadata: {
    readonly chunk_index: number;
    readonly chunk_count: number;
    readonly chunks_truncated: boolean;
    readonly object_id: string;
    readonly class: string;
  };
}

@Injectable()
export class SemanticSearch {
  constructor(@Optional() @Inject(QueryEmbeddings) private readonly embeddings?: QueryEmbeddings) {}

  @Tool({
    name: 'semantic_search',
    title: 'Search by meaning',
    description:
      'Passages of the rows whose text is nearest in meaning to the query, best first, each source row once under ' +
      'documents. Only for classes declared searchable. For exact words use atlas_text_search, for rows like a given ' +
      'one find_similar.',
    category: 'query',
    use: 'meaning',
    timeout: 30,
    clientSafe: true,
    annotations: READS_AND_EMBEDS,
    input: SemanticSearchArguments,
    output: objectOf(
      {
        chunks: listOf(OBJECT),
        documents: mapOf(OBJECT),
        count: INTEGER,
        budget_truncated: BOOLEAN,
        budget_dropped: INTEGER,
        note: STRING,
      },
      ['chunks', 'documents', 'count'],
    ),
  })
  async search(args: SemanticSearchArguments, call: ToolCall) {
    const similarity = await call.search.likeness(args.class_name);
    const query = searchText('query', args.query);
    const field = chooseText(args.text_field, similarity.textFields, (name) => similarity.wireName(name));
    const options = readOptions(args);
    similarity.check(options.filters);
    if (!this.embeddings) throw refuse.embeddingsNotConfigured();
    const { vector, calls, tokens } = await this.embeddings.embed(query, call);
    call.spend({ calls, tokens });
    const { hits, mayLackRows } = await similarity.nearest({ vector, limit: args.k, ...options.filters });
    const ranked = hits.flatMap((hit) => this.chunkHit(hit, field, similarity.className, options, call));
    const chunks = withinBudget(ranked, args.max_total_tokens);
    const shown = new Set(chunks.map(({ metadata }) => metadata.object_id));
    const notes = [
      ...(chunks.length < ranked.length
        ? ['More passages were found: raise max_total_tokens, or ask for fewer with k or chunk_size.']
        : []),
      ...(chunks.some(({ metadata }) => metadata.chunks_truncated)
        ? [
            'A text with chunks_truncated goes on: raise max_chunks_per_document or chunk_size, or read it with get_object.',
          ]
        : []),
      ...(mayLackRows ? [MAY_LACK_ROWS] : []),
    ];
    return {
      chunks,
      documents: Object.fromEntries(
        hits.flatMap(({ row }) => {
          const id = String(row['objectId']);
          return shown.has(id) ? [[id, simplifyRow(row)]] : [];
        }),
      ),
      count: chunks.length,
      ...(chunks.length < ranked.length && {
        budget_truncated: true,
        budget_dropped: ranked.length - chunks.length,
      }),
      ...(notes.length > 0 && { note: notes.join(' ') }),
    };
  }

  private chunkHit(
    { row, score }: SearchHit,
    field: string,
    className: string,
    { chunk, chunksPerDocument }: SemanticOptions,
    call: ToolCall,
  ): Chunk[] {
    const text = row[field];
    if (typeof text !== 'string') return [];
    const id = String(row['objectId']);
    const { chunks, truncated } = chunkText(text, chunk, chunksPerDocument);
    return chunks.map((content, index) => ({
      id: `${id}#${index}`,
      ...(score !== null && { score }),
      content,
      metadata: {
        chunk_index: index,
        chunk_count: chunks.length,
        chunks_truncated: truncated,
        object_id: id,
        class: className,
      },
      ...(call.switches.includeSourceProvenance && {
        _source: { class: className, tool: call.tool.name, object_id: id },
      }),
    }));
  }
}

function readOptions(args: SemanticSearchArguments): SemanticOptions {
  const unit = args.chunk_by === 'tokens' ? CHARACTERS_PER_TOKEN : 1;
  const { chunk_size: size } = args;
  // The usual overlap would exceed chunks smaller than itself.
  const overlap = args.chunk_overlap ?? Math.min(DEFAULT_OVERLAP, Math.floor(size / 8));
  if (overlap >= size) refuseArgument('chunk_overlap must be less than chunk_size');
  return {
    chunk: { size: size * unit, overlap: overlap * unit },
    chunksPerDocument: args.max_chunks_per_document,
    filters: { filter: args.filter, vectorFilter: args.vector_filter },
  };
}

/** The text to return: the first source text of the vector, unless the call names another. */
function chooseText(
  named: string | undefined,
  textFields: readonly string[],
  wireName: (name: string) => string,
): string {
  const [first] = textFields;
  if (first === undefined)
    return refuseArgument('this class has no readable text that its vector stands for');
  if (named === undefined || named === '') return first;
  const field = wireName(named);
  if (textFields.includes(field)) return field;
  return refuseArgument(`text_field must be one of ${textFields.join(', ')}`);
}
