import { Injectable } from '@nestjs/common';
import { isObjectId, refuse } from '#core';
import { isIdFor } from '#policy';
import {
  CheckedBy,
  CheckedByData,
  ClassName,
  RequiredText,
  WholeNumber,
} from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { INTEGER, listOf, mapOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { presentRows, simplifyRow } from '../shaping/presented-rows.js';
import { READ_ONLY, type ToolCall } from '../tool.js';

const FIELDS = listOf(STRING);

class GetObjectArguments {
  @ClassName() class_name!: string;
  @RequiredText() object_id!: string;
  @CheckedByData(FIELDS) keys?: unknown;
  @CheckedByData(FIELDS) include?: unknown;
}

@Injectable()
export class GetObject {
  @Tool({
    name: 'get_object',
    title: 'Get an object',
    description: 'One object by id, large fields included. For many use get_objects.',
    category: 'query',
    use: 'get',
    timeout: 10,
    clientSafe: true,
    annotations: READ_ONLY,
    input: GetObjectArguments,
    output: objectOf(
      {
        class_name: STRING,
        object_id: STRING,
        object: OBJECT,
      },
      ['class_name', 'object_id', 'object'],
    ),
  })
  async get(args: GetObjectArguments, call: ToolCall) {
    const { class_name: className, object_id: objectId, keys, include } = args;
    const { rows, truncatedIncludeFields } = await call.records.get(className, objectId, { keys, include });
    const row = rows[0];
    if (!row) throw refuse.objectNotFound(className, objectId);
    const object = simplifyRow(row);
    return {
      class_name: className,
      object_id: objectId,
      ...(typeof object['createdAt'] === 'string' && { created_at: object['createdAt'] }),
      ...(typeof object['updatedAt'] === 'string' && { updated_at: object['updatedAt'] }),
      object,
      ...(truncatedIncludeFields && { truncated_include_fields: truncatedIncludeFields }),
    };
  }
}

const MAX_IDS = 50;

function idsError(ids: unknown): string | null {
  if (ids === undefined || ids === null) return 'ids is required';
  if (!Array.isArray(ids)) return 'ids must be a list of object ids';
  const unique = new Set<unknown>(ids);
  if (unique.size > MAX_IDS)
    return `ids: at most ${MAX_IDS} at once; for more use query_class with {"objectId":{"$in":[…]}}`;
  // Which texts are ids depends on the class, and is checked with it.
  return [...unique].every((id) => typeof id === 'string' && id !== '')
    ? null
    : 'ids: every entry must be an object id';
}

/** Classes that Parse does not store have ids of other forms. @throws Refused */
async function assertIds(className: string, ids: readonly string[], call: ToolCall): Promise<void> {
  const { schema } = await call.records.describe(className);
  if (ids.every((id) => isIdFor(schema, id))) return;
  throw refuse.invalidArgument('ids: every entry must be an object id');
}

class GetObjectsArguments {
  @ClassName() class_name!: string;
  @CheckedBy(idsError, listOf(STRING))
  ids!: readonly string[];
  @CheckedByData(FIELDS) keys?: unknown;
  @CheckedByData(FIELDS) include?: unknown;
}

@Injectable()
export class GetObjects {
  @Tool({
    name: 'get_objects',
    title: 'Get objects',
    description:
      'Up to 50 objects by id. Ids without an object you may read are in missing; in a class with a tenant scope they refuse the call. For more use query_class with $in on objectId.',
    category: 'query',
    use: 'get',
    timeout: 20,
    clientSafe: true,
    annotations: READ_ONLY,
    input: GetObjectsArguments,
    output: objectOf(
      {
        class_name: STRING,
        objects: mapOf(OBJECT),
        missing: listOf(STRING),
        requested: INTEGER,
        found: INTEGER,
        _truncated: OBJECT,
      },
      ['class_name', 'objects', 'missing', 'requested', 'found'],
    ),
  })
  async get(args: GetObjectsArguments, call: ToolCall) {
    const { class_name: className, keys, include } = args;
    const ids = [...new Set(args.ids)];
    if (!ids.every(isObjectId)) await assertIds(className, ids, call);
    // An empty id list needs no query, but still passes the class gate.
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

class GetSampleObjectsArguments {
  @ClassName() class_name!: string;
  @WholeNumber({ min: 1, max: 20 }, 'Default 5, max 20.') limit = 5;
}

@Injectable()
export class GetSampleObjects {
  @Tool({
    name: 'get_sample_objects',
    title: 'Sample objects',
    description:
      'The newest objects of a class, to see its data. To choose use query_class. Default filter applies.',
    category: 'query',
    use: 'find',
    timeout: 15,
    clientSafe: true,
    annotations: READ_ONLY,
    input: GetSampleObjectsArguments,
    output: objectOf({ class_name: STRING, sample_count: INTEGER, samples: listOf(OBJECT) }, [
      'class_name',
      'sample_count',
      'samples',
    ]),
  })
  async sample({ class_name: className, limit }: GetSampleObjectsArguments, call: ToolCall) {
    const rows = await call.records.samples(className, limit);
    return {
      class_name: className,
      sample_count: rows.length,
      samples: rows.map(simplifyRow),
      note: `These are the ${rows.length} most recently created objects`,
    };
  }
}
