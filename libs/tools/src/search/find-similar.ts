import { Inject, Injectable, Optional } from '@nestjs/common';
import { Refused, refusals } from '#agent';
import { QueryEmbeddings } from '#data';
import {
  type Arguments,
  optionalObject,
  optionalString,
  refuseArgument,
  requiredString,
} from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, described, INTEGER, listOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { READS_AND_EMBEDS } from '../read-only-annotations.js';
import type { ToolCall } from '../tool.js';
import { foundRows } from './found-rows.js';
import { requiredText, resultCount, toldScore } from './search-arguments.js';

const LIMIT = { fallback: 5, most: 20 };

@Injectable()
export class FindSimilar {
  constructor(@Optional() @Inject(QueryEmbeddings) private readonly embeddings?: QueryEmbeddings) {}

  @Tool({
    name: 'find_similar',
    title: 'Find similar rows',
    description:
      'Rows most like a given row (object_id) or a text, by the vector stored with them, best first with a score. Only ' +
      'for classes declared searchable. For passages to quote use semantic_search, for exact words atlas_text_search.',
    category: 'query',
    timeout: 30,
    annotations: READS_AND_EMBEDS,
    input: argumentsOf(
      {
        class_name: STRING,
        field: described(STRING, 'The declared vector field; may be left out.'),
        object_id: {
          ...STRING,
          description: 'A row of the class; it is not among the results.',
          examples: ['x0Ab3CdEf9'],
        },
        text: described(STRING, 'Instead of object_id: what the rows should be like.'),
        limit: described(INTEGER, 'Rows at most: default 5, max 20.'),
        where: described(OBJECT, "Constraint over the class's filter fields."),
      },
      ['class_name'],
    ),
    output: objectOf({ class_name: STRING, field: STRING, count: INTEGER, results: listOf(OBJECT) }, [
      'class_name',
      'count',
      'results',
    ]),
  })
  async find(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const likeness = await call.search.likeness(className);
    const named = optionalString(args, 'field') || undefined;
    if (named !== undefined && likeness.wireName(named) !== likeness.field)
      refuseArgument(`field must be '${likeness.field}', the declared vector field`);
    const objectId = optionalString(args, 'object_id') || undefined;
    if ((objectId === undefined) === (optionalString(args, 'text') === undefined))
      refuseArgument('one of object_id and text is required');
    const filter = optionalObject(args, 'where');
    likeness.check({ filter });
    const vector =
      objectId === undefined
        ? await this.vectorOfText(requiredText(args, 'text'), call)
        : await likeness.vectorOf(objectId);
    const hits = await likeness.nearest({
      vector,
      filter,
      limit: resultCount(args, 'limit', LIMIT),
      ...(objectId !== undefined && { except: objectId }),
    });
    const results = foundRows(hits, ({ score }) => toldScore(score, call.agent.permissions));
    return { class_name: className, field: likeness.field, count: results.length, results };
  }

  private async vectorOfText(text: string, call: ToolCall): Promise<readonly number[]> {
    if (!this.embeddings) throw new Refused(refusals.embeddingsNotConfigured());
    const { vector, calls, tokens } = await this.embeddings.embed(text, call);
    call.spend({ calls, tokens });
    return vector;
  }
}
