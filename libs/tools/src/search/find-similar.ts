import { Inject, Injectable, Optional } from '@nestjs/common';
import { refuse } from '#core';
import { QueryEmbeddings } from '#data';
import { admitsSearchedClass, refuseArgument } from '../arguments/argument-class.js';
import { ClassName, JsonObject, ResultCount, Text } from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { INTEGER, listOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { READS_AND_EMBEDS, type ToolCall } from '../tool.js';
import { toFoundRows, MAY_LACK_ROWS, searchText } from './found-rows.js';

class FindSimilarArguments {
  static readonly admission = admitsSearchedClass;

  @ClassName() class_name!: string;
  @Text() field?: string;
  @Text() object_id?: string;
  @Text('Instead of object_id.') text?: string;
  @ResultCount(20, 'Default 5, max 20.') limit = 5;
  @JsonObject('Over filter fields of the class.') where?: Readonly<Record<string, unknown>>;
}

@Injectable()
export class FindSimilar {
  constructor(@Optional() @Inject(QueryEmbeddings) private readonly embeddings?: QueryEmbeddings) {}

  @Tool({
    name: 'find_similar',
    title: 'Find similar rows',
    description:
      'Rows most like a row (object_id) or a text, by stored vectors, best first. For exact words use atlas_text_search.',
    category: 'query',
    use: 'vectors',
    timeout: 30,
    annotations: READS_AND_EMBEDS,
    input: FindSimilarArguments,
    output: objectOf({ class_name: STRING, count: INTEGER, results: listOf(OBJECT), note: STRING }, [
      'class_name',
      'count',
      'results',
    ]),
  })
  async find(args: FindSimilarArguments, call: ToolCall) {
    const { class_name: className, text, where: filter, limit } = args;
    const similarity = await call.search.likeness(className);
    const named = args.field || undefined;
    if (named !== undefined && similarity.wireName(named) !== similarity.field)
      refuseArgument(`field must be '${similarity.field}', the declared vector field`);
    const objectId = args.object_id || undefined;
    if ((objectId === undefined) === (text === undefined))
      refuseArgument('one of object_id and text is required');
    similarity.check({ filter });
    const vector =
      objectId === undefined
        ? await this.vectorOfText(searchText('text', text ?? ''), call)
        : await similarity.readVector(objectId);
    const { hits, mayLackRows } = await similarity.nearest({
      vector,
      filter,
      limit,
      ...(objectId !== undefined && { except: objectId }),
    });
    const results = toFoundRows(hits);
    return {
      class_name: className,
      field: similarity.field,
      count: results.length,
      results,
      ...(mayLackRows && { note: MAY_LACK_ROWS }),
    };
  }

  private async vectorOfText(text: string, call: ToolCall): Promise<readonly number[]> {
    if (!this.embeddings) throw refuse.embeddingsNotConfigured();
    const { vector, calls, tokens } = await this.embeddings.embed(text, call);
    call.spend({ calls, tokens });
    return vector;
  }
}
