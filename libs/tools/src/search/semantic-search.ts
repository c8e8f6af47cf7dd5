import { Inject, Injectable, Optional } from '@nestjs/common';
import { Refused, refusals } from '#agent';
import { QueryEmbeddings, type SearchHit } from '#data';
import { type Arguments, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import {
  argumentsOf,
  BOOLEAN,
  described,
  INTEGER,
  listOf,
  mapOf,
  OBJECT,
  objectOf,
  STRING,
} from '../json-schema.js';
import { READS_AND_EMBEDS } from '../read-only-annotations.js';
import { simplifyRow } from '../shaping/simplify.js';
import type { ToolCall } from '../tool.js';
import { chunked, withinBudget } from './chunks.js';
import { requiredText, resultCount, toldScore } from './search-arguments.js';
import { chosenText, semanticOptions, type SemanticOptions, withAliases } from './semantic-arguments.js';

const K = { fallback: 5, most: 20 };

interface Chunk {
  readonly id: string;
  readonly score: number;
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
    timeout: 30,
    clientSafe: true,
    annotations: READS_AND_EMBEDS,
    input: argumentsOf(
      {
        class_name: STRING,
        query: described(STRING, 'What to look for, in your own words.'),
        k: described(INTEGER, 'Rows at most: default 5, max 20.'),
        filter: described(OBJECT, "Constraint on the rows found, over the class's filter fields."),
        vector_filter: described(OBJECT, 'The same, applied before rows are ranked.'),
        text_field: described(STRING, 'Which of the embedded texts to hand back. Default: the first.'),
        chunk_size: described(INTEGER, 'Default 800.'),
        chunk_overlap: described(INTEGER, 'Default 100; less than chunk_size.'),
        chunk_by: { type: 'string', enum: ['chars', 'tokens'] },
        max_chunks_per_document: described(INTEGER, 'At most 200.'),
        max_total_tokens: described(INTEGER, 'Default 20000; 0: no limit.'),
      },
      ['class_name', 'query'],
    ),
    output: objectOf(
      {
        chunks: listOf(OBJECT),
        documents: mapOf(OBJECT),
        count: INTEGER,
        budget_truncated: BOOLEAN,
        budget_dropped: INTEGER,
      },
      ['chunks', 'documents', 'count'],
    ),
  })
  async search(given: Arguments, call: ToolCall) {
    const args = withAliases(given);
    const className = requiredString(args, 'class_name');
    const likeness = await call.search.likeness(className);
    const query = requiredText(args, 'query');
    const field = chosenText(args, likeness.textFields, (name) => likeness.wireName(name));
    const options = semanticOptions(args);
    likeness.check(options.filters);
    const limit = resultCount(args, 'k', K);
    if (!this.embeddings) throw new Refused(refusals.embeddingsNotConfigured());
    const { vector, calls, tokens } = await this.embeddings.embed(query, call);
    call.spend({ calls, tokens });
    const hits = await likeness.nearest({ vector, limit, ...options.filters });
    const ranked = hits.flatMap((hit) => this.chunksOf(hit, field, likeness.className, options, call));
    const chunks = withinBudget(ranked, options.totalTokens);
    const shown = new Set(chunks.map(({ metadata }) => metadata.object_id));
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
    };
  }

  private chunksOf(
    { row, score }: SearchHit,
    field: string,
    className: string,
    { chunk, chunksPerDocument }: SemanticOptions,
    call: ToolCall,
  ): Chunk[] {
    const text = row[field];
    if (typeof text !== 'string') return [];
    const id = String(row['objectId']);
    const { chunks, truncated } = chunked(text, chunk, chunksPerDocument);
    const told = toldScore(score, call.agent.permissions);
    return chunks.map((content, index) => ({
      id: `${id}#${index}`,
      score: told,
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
