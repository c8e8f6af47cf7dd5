import { Inject, Injectable, Optional } from '@nestjs/common';
import { isSystemClassName } from '#agent';
import type { GovernedClass } from '#data';
import { Text, TextList } from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { INTEGER, listOf, objectOf, STRING } from '../json-schema.js';
import { callableMethods, DeclaredMethods } from '../methods/method-registry.js';
import { hardenSchemaText } from '../shaping/schema-text.js';
import { READ_ONLY, type ToolCall, ToolEnvironment } from '../tool.js';

/** Columns of every Parse class: they say nothing about how rich a class is. */
const DEFAULT_FIELDS = new Set(['objectId', 'createdAt', 'updatedAt', 'ACL']);

const CLASS_SUMMARY = objectOf({ name: STRING, fields: INTEGER, desc: STRING, methods: INTEGER }, [
  'name',
  'fields',
]);

class GetAllSchemasArguments {
  @TextList('Only these, exact names.') names: readonly string[] = [];
  @Text('Only names that start so.') prefix = '';
}

@Injectable()
export class GetAllSchemas {
  constructor(
    private readonly environment: ToolEnvironment,
    @Optional() @Inject(DeclaredMethods) private readonly methods?: DeclaredMethods,
  ) {}

  @Tool({
    name: 'get_all_schemas',
    title: 'List classes',
    description: 'The classes you may read, with their number of fields. get_schema tells of one in detail.',
    category: 'schema',
    timeout: 15,
    annotations: READ_ONLY,
    input: GetAllSchemasArguments,
    output: objectOf(
      { total: INTEGER, note: STRING, built_in: listOf(CLASS_SUMMARY), custom: listOf(CLASS_SUMMARY) },
      ['total', 'built_in', 'custom'],
    ),
  })
  async list(args: GetAllSchemasArguments, call: ToolCall) {
    const { prefix } = args;
    const names = new Set(args.names);
    const wanted = (await call.records.classes()).filter(
      ({ className }) => (names.size === 0 || names.has(className)) && className.startsWith(prefix),
    );
    const summaries = wanted.map((known) => this.summary(known, call));
    return {
      total: summaries.length,
      note: 'Call get_schema(class_name) for the fields, permissions and relations of a class.',
      built_in: summaries.filter(({ name }) => isSystemClassName(name)),
      custom: summaries.filter(({ name }) => !isSystemClassName(name)),
    };
  }

  private summary(known: GovernedClass, call: ToolCall) {
    const { className, fields, policy } = known;
    const own = fields.filter((field) => !DEFAULT_FIELDS.has(field));
    const declared = this.methods?.of(className) ?? [];
    const methods = callableMethods(declared, known, call.agent, this.environment);
    const strict = call.switches.promptMarkerStrict;
    return {
      name: className,
      fields: own.length,
      ...(policy.description && { desc: hardenSchemaText(policy.description, { strict }) }),
      ...(methods.length > 0 && { methods: methods.length }),
    };
  }
}
