import { Injectable } from '@nestjs/common';
import { isObjectId } from '#agent';
import { type Arguments, refuseArgument, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, described, INTEGER, listOf, mapOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { READ_ONLY } from '../read-only-annotations.js';
import type { ToolCall } from '../tool.js';
import { presentRows } from './row-source.js';

const MAX_IDS = 50;

function uniqueIds(args: Arguments): readonly string[] {
  const ids = Object.hasOwn(args, 'ids') ? args['ids'] : undefined;
  if (ids === undefined || ids === null) return refuseArgument('ids is required');
  if (!Array.isArray(ids)) return refuseArgument('ids must be a list of object ids');
  const unique: readonly unknown[] = [...new Set<unknown>(ids)];
  if (unique.length > MAX_IDS)
    return refuseArgument(
      `ids: at most ${MAX_IDS} at once; for more use query_class with {"objectId":{"$in":[…]}}`,
    );
  return unique.every(isObjectId) ? unique : refuseArgument('ids: every entry must be an object id');
}

@Injectable()
export class GetObjects {
  @Tool({
    name: 'get_objects',
    title: 'Get objects',
    description:
      'Up to 50 objects of one class by id in one call, instead of get_object for each. Ids without an object you may ' +
      'read come back in missing; of a class with a tenant scope they refuse the call. For more than 50 use query_class with $in on objectId.',
    category: 'query',
    timeout: 20,
    clientSafe: true,
    annotations: READ_ONLY,
    input: argumentsOf(
      {
        class_name: STRING,
        ids: described(listOf(STRING), 'Object ids, at most 50 different ones.'),
        keys: described(listOf(STRING), 'As in query_class.'),
        include: described(listOf(STRING), 'As in query_class.'),
      },
      ['class_name', 'ids'],
    ),
    output: objectOf(
      {
        class_name: STRING,
        objects: mapOf(OBJECT),
        missing: listOf(STRING),
        requested: INTEGER,
        found: INTEGER,
        truncated_include_fields: mapOf(listOf(STRING)),
        _truncated: OBJECT,
      },
      ['class_name', 'objects', 'missing', 'requested', 'found'],
    ),
  })
  async get(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const ids = uniqueIds(args);
    const { keys, include } = args;
    // No ids is no query, but still passes the class gate.
    const { rows, truncatedIncludeFields } = await call.records.getMany(className, ids, { keys, include });
    const byId = new Map(presentRows(rows, className, call).map((row) => [String(row['objectId']), row]));
    const found = ids.filter((id) => byId.has(id));
    return {
      class_name: className,
      objects: Object.fromEntries(found.map((id) => [id, byId.get(id)])),
      missing: ids.filter((id) => !byId.has(id)),
      requested: ids.length,
      found: found.length,
      ...(truncatedIncludeFields && { truncated_include_fields: truncatedIncludeFields }),
    };
  }
}
