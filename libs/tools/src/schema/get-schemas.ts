import { Inject, Injectable, Logger, Optional } from '@nestjs/common';
import { type Agent, isSystemClassName } from '#core';
import type { GovernedClass } from '#data';
import { ALWAYS_KEEP, isNameable, takeRoot } from '#policy';
import { ClassName, Text, TextList, WholeNumber } from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { INTEGER, listOf, mapOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { callableMethods, DeclaredMethods } from '../methods/method-registry.js';
import { relationEdges, listRelations } from '../shaping/relation-graph.js';
import { hardenSchemaText } from '../shaping/untrusted-text.js';
import { READ_ONLY, type ToolCall, ToolEnvironment } from '../tool.js';
import {
  describeField,
  describeMethods,
  describePermissions,
  showDefaultFilter,
} from './class-description.js';

const BUILT_IN_CLASSES = new Map([
  ['_User', 'User accounts'],
  ['_Role', 'Access roles'],
  ['_Session', 'User sessions'],
  ['_Installation', 'Device installations'],
  ['_Product', 'In-app purchases'],
  ['_Audience', 'Push audiences'],
]);

function findType({ className, schema }: GovernedClass): string {
  if (schema.storage === 'plain') return 'custom';
  const purpose = BUILT_IN_CLASSES.get(className);
  if (purpose) return `built-in: ${purpose}`;
  return isSystemClassName(className) ? 'built-in' : 'custom';
}

/** Whether a row filter of the agent, or of one above it, may limit what it reads. */
function hasFilters({ definition, parent }: Agent): boolean {
  return definition.filters.size > 0 || (parent !== null && hasFilters(parent));
}

/** The declared names that this agent may use, without those that every class returns anyway. */
function nameable(
  fields: readonly string[] | null | undefined,
  readable: ReadonlySet<string>,
): readonly string[] {
  const always: readonly string[] = ALWAYS_KEEP;
  return (fields ?? []).filter((name) => readable.has(name) && !always.includes(name));
}

class GetSchemaArguments {
  @ClassName() class_name!: string;
  @WholeNumber({ min: 0, max: Number.MAX_SAFE_INTEGER }) skip = 0;
}

@Injectable()
export class GetSchema {
  private readonly logger = new Logger(GetSchema.name);

  constructor(
    private readonly environment: ToolEnvironment,
    @Optional() @Inject(DeclaredMethods) private readonly methods?: DeclaredMethods,
  ) {}

  @Tool({
    name: 'get_schema',
    title: 'Describe a class',
    description:
      'Fields, indexes, permissions, relations and default filter of a class. Leave large_field: true out with keys and read it with get_object. agent_fields may be named in keys, where and pipelines; storage names (_p_x) and masked_fields never.',
    category: 'schema',
    use: 'describe',
    timeout: 10,
    annotations: READ_ONLY,
    input: GetSchemaArguments,
    output: objectOf(
      {
        class_name: STRING,
        type: STRING,
        description: STRING,
        fields: listOf(objectOf({ name: STRING, type: STRING }, ['name', 'type'])),
        indexes: listOf(OBJECT),
        agent_methods: listOf(OBJECT),
        canonical_filter: OBJECT,
        agent_fields: listOf(STRING),
        masked_fields: mapOf(STRING),
        relations: OBJECT,
      },
      ['class_name', 'type', 'fields'],
    ),
  })
  async describe(args: GetSchemaArguments, call: ToolCall) {
    const known = await call.records.describe(args.class_name);
    const all = await call.records.classes();
    const indexes = await call.records.indexes(known.className);
    const { className, schema, policy, masks } = known;
    const text = { strict: call.switches.promptMarkerStrict };
    const context = {
      properties: policy.properties,
      largeFields: policy.largeFields,
      knownClasses: new Set(all.map((other) => other.className)),
      readsEveryRow: policy.tenantScope === null && policy.filters === null && !hasFilters(call.agent),
      text,
    };
    const fields = this.nameableFields(known);
    const readable = new Set(fields);
    const declared = this.methods?.of(className) ?? [];
    const methods = describeMethods(callableMethods(declared, known, call.agent, this.environment), {
      text,
      showPermittedKeys: call.switches.agentDebug,
    });
    const allowed = nameable(policy.fields, readable);
    const joined = nameable(policy.joinFields, readable);
    const defaultFilter = showDefaultFilter(known, context.knownClasses);
    const described = fields.flatMap((name) => {
      const field = schema.fields.get(name);
      return field ? [describeField(name, field, context)] : [];
    });
    const shown = described.slice(args.skip);
    // The first part said the rest.
    if (args.skip > 0) return { class_name: className, type: findType(known), fields: shown };
    return {
      class_name: className,
      type: findType(known),
      ...(policy.description && { description: hardenSchemaText(policy.description, text) }),
      ...(policy.usage && { usage: hardenSchemaText(policy.usage, text) }),
      fields: shown,
      // An index over an unreadable field would reveal that the field exists.
      indexes: indexes
        .filter((index) => index.fields.every((field) => readable.has(takeRoot(field))))
        .map(({ name, fields: indexed, unique }) => ({ name, fields: indexed, unique })),
      permissions: describePermissions(schema.classLevelPermissions, readable),
      ...(methods.length > 0 && { agent_methods: methods }),
      ...(defaultFilter && { canonical_filter: defaultFilter }),
      ...(policy.canonicalFilter && !defaultFilter && { canonical_filter_withheld: true }),
      ...(allowed.length > 0 && { agent_fields: allowed }),
      ...(joined.length > 0 && { agent_join_fields: joined }),
      ...(masks.size > 0 && { masked_fields: Object.fromEntries(masks) }),
      relations: listRelations(className, relationEdges(all)),
    };
  }

  private nameableFields({ className, fields, schema, policy }: GovernedClass): readonly string[] {
    const nameable = fields.filter((name) =>
      isNameable(name, schema.fields.get(name)?.origin, policy.fields),
    );
    const dropped = fields.length - nameable.length;
    if (dropped > 0)
      this.logger.warn(`${className}: ${dropped} field(s) with unusable names left out of the schema`);
    return nameable;
  }
}

/** Columns of every Parse class: they do not indicate how rich a class is. */
const DEFAULT_FIELDS = new Set(['objectId', 'createdAt', 'updatedAt', 'ACL']);

const CLASS_SUMMARY = objectOf({ name: STRING, fields: INTEGER, desc: STRING }, ['name']);

class GetAllSchemasArguments {
  @TextList() names: readonly string[] = [];
  @Text() prefix = '';
  @WholeNumber({ min: 0, max: Number.MAX_SAFE_INTEGER }) skip = 0;
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
    description: 'The classes you may read. get_schema describes one.',
    category: 'schema',
    timeout: 15,
    annotations: READ_ONLY,
    input: GetAllSchemasArguments,
    output: objectOf({ total: INTEGER, built_in: listOf(CLASS_SUMMARY), custom: listOf(CLASS_SUMMARY) }, [
      'total',
      'built_in',
      'custom',
    ]),
  })
  async list(args: GetAllSchemasArguments, call: ToolCall) {
    const { prefix, skip } = args;
    const names = new Set(args.names);
    const requested = (await call.records.classes()).filter(
      ({ className }) => (names.size === 0 || names.has(className)) && className.startsWith(prefix),
    );
    const summaries = requested.map((known) => this.summary(known, call));
    const ofParse = new Set(
      requested.flatMap(({ className, schema }) =>
        schema.storage !== 'plain' && isSystemClassName(className) ? [className] : [],
      ),
    );
    const builtIn = summaries.filter(({ name }) => ofParse.has(name));
    const custom = summaries.filter(({ name }) => !ofParse.has(name));
    return {
      total: summaries.length,
      note: 'Call get_schema(class_name) for the fields, permissions and relations of a class.',
      built_in: builtIn.slice(skip),
      custom: custom.slice(Math.max(skip - builtIn.length, 0)),
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
