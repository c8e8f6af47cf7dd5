import { canonicalClassName, isObjectId, Refused } from '#core';
import type { ClassSchema } from '#policy';
import { type RelationEdge, relationEdges } from '#tools';
import {
  identifierArgument,
  limitArgument,
  objectIdArgument,
  PARSE_CONVENTIONS,
  type Prompt,
  type PromptArgument,
  type PromptArguments,
  type PromptCall,
  timestampArgument,
} from './prompt.js';

const classArgument = (name: string, description: string): PromptArgument => ({
  name,
  description,
  required: true,
  completion: { kind: 'class' },
});

const json = (value: unknown) => JSON.stringify(value);

async function parseRelations({ args, records }: PromptCall): Promise<string> {
  const requested = (args.get('classes') ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const subset = requested.length > 0 ? new Set(requested.map(canonicalClassName)) : undefined;
  const edges = relationEdges(await records.classes(), subset);
  const lines = [
    subset ? 'Class relations, limited to the classes that were named:' : 'Class relations:',
    '',
    drawRelations(edges),
    '',
  ];
  if (subset && edges.length === 0) {
    lines.push('Nothing matched. Check case and spelling: it is _User, not _user.', '');
  }
  lines.push(
    'Reading a line: A ─1:N→ B (B.f) means that field f of B is a pointer to A, so one A has many B. ' +
      'A ─N:M→ B (A.f) means that f is a relation column of A holding many B.',
    'The field in brackets is its stored camelCase name and can be used in where and include.',
  );
  return lines.join('\n');
}

function classOverview(args: PromptArguments): string {
  const name = identifierArgument(args, 'class_name');
  return (
    `Describe the class ${name}. Call get_schema, count_objects and get_sample_objects (limit 3) with ` +
    `class_name ${json(name)}. Then summarise its fields, what each seems to mean, and any notable values in the samples.`
  );
}

function countBy(args: PromptArguments): string {
  const name = identifierArgument(args, 'class_name');
  const field = identifierArgument(args, 'group_by');
  const pipeline = [
    { $group: { _id: `$${field}`, count: { $sum: 1 } } },
    { $sort: { count: -1 } },
    { $limit: 25 },
  ];
  return (
    `Count ${name} objects by ${field}. Call aggregate with class_name ${json(name)} and pipeline ${json(pipeline)}. ` +
    'When the field is a pointer, the group keys come back as Class$objectId: strip the part up to and including the $. ' +
    'Report the largest groups, how many objects have no value (a null key), and the total.'
  );
}

function recentActivity(args: PromptArguments): string {
  const name = identifierArgument(args, 'class_name');
  const limit = limitArgument(args, 'limit');
  return (
    `Show what happened recently in ${name}. Call query_class with class_name ${json(name)}, order "-createdAt" and ` +
    `limit ${limit}. Begin the answer with the newest createdAt, then summarise the rows.`
  );
}

async function findRelationship({ args, records }: PromptCall): Promise<string> {
  const parent = identifierArgument(args, 'parent_class');
  const id = await objectIdArgument(args, 'parent_id', () => schemaOf(parent, records));
  const child = identifierArgument(args, 'child_class');
  const field = identifierArgument(args, 'pointer_field');
  const where = { [field]: { __type: 'Pointer', className: parent, objectId: id } };
  return (
    `Find the ${child} objects that belong to ${parent} ${isObjectId(id) ? id : json(id)}. First call count_objects with class_name ${json(child)} ` +
    `and where ${json(where)}, then query_class with the same class_name and where, limit 20. ` +
    `Tell the count first. ${field} is used exactly as the field is stored.`
  );
}

/** Undefined for a class that the agent does not know. */
async function schemaOf(className: string, records: PromptCall['records']): Promise<ClassSchema | undefined> {
  try {
    return (await records.describe(className)).schema;
  } catch (error) {
    if (error instanceof Refused) return undefined;
    throw error;
  }
}

function buildCreatedInRange(args: PromptArguments): string {
  const name = identifierArgument(args, 'class_name');
  const date = (argument: string) => ({ __type: 'Date', iso: timestampArgument(args, argument) });
  const where = { createdAt: { $gte: date('since'), ...(args.has('until') && { $lt: date('until') }) } };
  return (
    `Find the ${name} objects created in a time range. Call count_objects with class_name ${json(name)} and ` +
    `where ${json(where)}, then query_class with the same where, order "-createdAt", limit 10. ` +
    'Report the count and the range of createdAt in the sample.'
  );
}

const EXPLORE =
  'Get to know this database. Call get_all_schemas to list the classes, then count_objects for each. ' +
  'Skip classes whose names start with _ except _User and _Role. Group the classes by what they seem to be for and summarise.';

/** The catalogue every server starts with, in the order it is listed. */
export const BUILT_IN_PROMPTS: readonly Prompt[] = [
  {
    name: 'parse_conventions',
    description: 'How Parse data is written, and the security rules for reading it',
    arguments: [],
    render: () => PARSE_CONVENTIONS,
  },
  {
    name: 'parse_relations',
    description: 'Diagram of how classes point at each other',
    arguments: [
      {
        name: 'classes',
        description: 'Comma-separated class names to limit the diagram to',
        completion: { kind: 'classes' },
      },
    ],
    render: parseRelations,
  },
  {
    name: 'explore_database',
    description: 'Survey all classes, their sizes and purposes',
    arguments: [],
    render: () => EXPLORE,
  },
  {
    name: 'class_overview',
    description: 'Fields, size and samples of one class',
    arguments: [classArgument('class_name', 'Class to describe')],
    render: ({ args }) => classOverview(args),
  },
  {
    name: 'count_by',
    description: 'Count the objects of a class by the values of one field',
    arguments: [
      classArgument('class_name', 'Class to count'),
      {
        name: 'group_by',
        description: 'Field whose values form the groups',
        required: true,
        completion: { kind: 'field', of: 'class_name' },
      },
    ],
    render: ({ args }) => countBy(args),
  },
  {
    name: 'recent_activity',
    description: 'The newest objects of a class',
    arguments: [
      classArgument('class_name', 'Class to look at'),
      { name: 'limit', description: 'How many objects, 1 to 100 (default 10)' },
    ],
    render: ({ args }) => recentActivity(args),
  },
  {
    name: 'find_relationship',
    description: 'Objects of one class that point at a given object of another',
    arguments: [
      classArgument('parent_class', 'Class that is pointed at'),
      { name: 'parent_id', description: 'objectId of the object that is pointed at', required: true },
      classArgument('child_class', 'Class that holds the pointer'),
      {
        name: 'pointer_field',
        description: 'Pointer field of the child class, as stored',
        required: true,
        completion: { kind: 'field', of: 'child_class', pointersOnly: true },
      },
    ],
    render: findRelationship,
  },
  {
    name: 'created_in_range',
    description: 'Objects of a class created in a time range',
    arguments: [
      classArgument('class_name', 'Class to look at'),
      { name: 'since', description: 'Start, ISO 8601 date-time, inclusive', required: true },
      { name: 'until', description: 'End, ISO 8601 date-time, exclusive' },
    ],
    render: ({ args }) => buildCreatedInRange(args),
  },
];

/** Those that speak of how Parse stores data. */
export const PARSE_PROMPTS: ReadonlySet<string> = new Set(['parse_conventions', 'parse_relations']);

const NO_RELATIONS = '(no class relations defined)';

/** One edge per line, columns aligned. */
export function drawRelations(edges: readonly RelationEdge[]): string {
  if (edges.length === 0) return NO_RELATIONS;
  const fromWidth = Math.max(...edges.map(({ from }) => from.length));
  const toWidth = Math.max(...edges.map(({ to }) => to.length));
  return edges
    .map(
      ({ from, to, via, cardinality }) =>
        `${from.padEnd(fromWidth)} ─${cardinality}→ ${to.padEnd(toWidth)}  (${via})`,
    )
    .join('\n');
}
