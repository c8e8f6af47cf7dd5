import { Inject, Injectable, Optional } from '@nestjs/common';
import { isSystemClassName } from '#agent';
import type { GovernedClass } from '#data';
import { type Arguments, optionalString, optionalStringList } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { DeclaredMethods } from '../declared-methods.js';
import { ToolEnvironment } from '../environment.js';
import { argumentsOf, described, INTEGER, listOf, objectOf, STRING } from '../json-schema.js';
import { callableMethods } from '../methods/callable-methods.js';
import { READ_ONLY } from '../read-only-annotations.js';
import { hardenSchemaText } from '../shaping/schema-text.js';
import type { ToolCall } from '../tool.js';

/** Columns of every Parse class: they say nothing about how rich a class is. */
const DEFAULT_FIELDS = new Set(['objectId', 'createdAt', 'updatedAt', 'ACL']);

const CLASS_SUMMARY = objectOf({ name: STRING, fields: INTEGER, desc: STRING, methods: INTEGER }, [
  'name',
  'fields',
]);

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
    input: argumentsOf({
      names: described(listOf(STRING), 'Only these, exact names.'),
      prefix: described(STRING, 'Only names that start so.'),
    }),
    output: objectOf(
      { total: INTEGER, note: STRING, built_in: listOf(CLASS_SUMMARY), custom: listOf(CLASS_SUMMARY) },
      ['total', 'built_in', 'custom'],
    ),
  })
  async list(args: Arguments, call: ToolCall) {
    const names = new Set(optionalStringList(args, 'names'));
    const prefix = optionalString(args, 'prefix') ?? '';
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
