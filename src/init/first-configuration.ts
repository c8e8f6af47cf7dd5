import { Document, isCollection, isMap, isPair, isScalar, Scalar, type YAMLMap } from 'yaml';
import type { DatabaseSurvey } from '#data-mongo';
import { type GuessedClass, Guesses, shortenName } from './guesses.js';

/** The variable that holds the key of the one agent. */
export const KEY_VARIABLE = 'MCP_API_KEY';
/** The variable that holds the tenant of the one agent, where classes have one. */
export const TENANT_VARIABLE = 'PARLEY_TENANT';
/** Characters of a line of comments. */
const LINE_WIDTH = 110;

export interface FirstConfiguration {
  readonly yaml: string;
  readonly classes: number;
  /** Collections and classes that are not in it. */
  readonly leftOut: number;
  /** Columns that are not in it. */
  readonly withheld: number;
  /** Classes show the rows of a tenant, so the agent needs one. */
  readonly hasTenants: boolean;
}

/** A database of a configuration, which has other classes already. */
interface FurtherPlace {
  /** Its name there. */
  readonly name: string;
  /** Names of the other classes. */
  readonly taken: ReadonlySet<string>;
}

export interface ConfiguredDatabase {
  /** As it is written: a reference to the environment where the URI holds credentials. */
  readonly uri: string;
  /** Where editors find the JSON Schema of the file, from its folder. */
  readonly schema: string;
}

/** Guesses a first configuration from a database: readable by one agent, and nothing that looks secret or personal. */
export async function firstConfiguration(
  survey: DatabaseSurvey,
  database: ConfiguredDatabase,
): Promise<FirstConfiguration> {
  const guesses = new Guesses(survey);
  await guesses.make();
  const { classes, leftOut } = guesses;
  return {
    yaml: writeConfiguration(survey, database, classes, leftOut),
    classes: classes.length,
    leftOut: leftOut.length,
    withheld: classes.reduce((sum, one) => sum + one.withheld.size, 0),
    hasTenants: classes.some(({ tenant }) => tenant !== null),
  };
}

/** Values that are references to the environment stay text, whatever they are replaced by. */
/** About 60,000 tokens: what a model reads of one result at most. */
const MODEL_RESULT_BYTES = 262_144;

/** The classes of a database beside the first one, to be added to those of its configuration. */
export async function furtherClasses(
  survey: DatabaseSurvey,
  place: FurtherPlace,
): Promise<FirstConfiguration> {
  const guesses = new Guesses(survey);
  await guesses.make();
  const { classes, leftOut } = guesses;
  return {
    yaml: writeFurtherClasses(survey, place, classes, leftOut),
    classes: classes.length,
    leftOut: leftOut.length,
    withheld: classes.reduce((sum, one) => sum + one.withheld.size, 0),
    hasTenants: classes.some(({ tenant }) => tenant !== null),
  };
}

function writeFurtherClasses(
  survey: DatabaseSurvey,
  { name, taken }: FurtherPlace,
  guessed: readonly GuessedClass[],
  leftOut: readonly string[],
): string {
  const ofParse = survey.parseClasses !== null;
  const entries = guessed.map((one) => [
    one.className,
    { database: name, ...(classEntry(one, ofParse) as object) },
  ]);
  const document = new Document({ policy: { classes: Object.fromEntries(entries) as object } });
  document.commentBefore = [
    ` Written by parley init from the database ${shortenName(survey.database)}, which is '${name}' in the configuration.`,
    ' Add these classes to those of the configuration. They are guesses: read them before you serve them.',
  ].join('\n');
  if (leftOut.length > 0)
    commentOn(
      document,
      ['policy', 'classes'],
      ['Not listed, so no agent can see them:', ...leftOut.map((line) => `  ${line}`)],
    );
  for (const { className, comments } of guessed) {
    const isTaken = taken.has(className);
    const clash =
      'The configuration has a class of this name already: give this one another, also where columns refer to it.';
    commentOn(document, ['policy', 'classes', className], [...(isTaken ? [clash] : []), ...comments]);
    flowLists(document, className);
  }
  return document.toString({ lineWidth: 120 });
}

function quoteText(text: string): Scalar {
  const scalar = new Scalar(text);
  scalar.type = Scalar.QUOTE_SINGLE;
  return scalar;
}

function writeConfiguration(
  survey: DatabaseSurvey,
  { uri, schema }: ConfiguredDatabase,
  guessed: readonly GuessedClass[],
  leftOut: readonly string[],
): string {
  const ofParse = survey.parseClasses !== null;
  const hasTenants = guessed.some(({ tenant }) => tenant !== null);
  const classes = hasTenants ? guessed.map(withoutSharedSearch) : guessed;
  const document = new Document({
    database: { uri: quoteText(uri), name: survey.database, storage: ofParse ? 'parse' : 'plain' },
    server: { maxResultBytes: MODEL_RESULT_BYTES },
    agents: {
      reader: {
        permissions: 'readonly',
        ...(hasTenants && { tenantId: quoteText(`\${${TENANT_VARIABLE}}`) }),
      },
    },
    auth: [{ apiKey: quoteText(`\${${KEY_VARIABLE}}`), agent: 'reader' }],
    policy: {
      unlistedClasses: 'refuse',
      classes: Object.fromEntries(classes.map((one) => [one.className, classEntry(one, ofParse)])),
    },
  });
  document.commentBefore = [
    ` yaml-language-server: $schema=${schema}`,
    ` Written by parley init from the database ${shortenName(survey.database)}.`,
    ' Classes, columns and references are guesses from its catalogue, its validators and up to 200 documents of each',
    ' collection. Read it before you serve it: agents read what it lists, and nothing else.',
  ].join('\n');
  commentOn(
    document,
    ['agents'],
    [
      'One agent that reads. Whoever has the key is this agent.',
      ...(hasTenants ? ['It reads the rows of one tenant: that of its tenantId.'] : []),
      ...(ofParse
        ? [
            'It reads rows of Parse whatever their ACL says; give it a role or a user (identity) to change that.',
          ]
        : []),
    ],
  );
  if (leftOut.length > 0)
    commentOn(
      document,
      ['policy', 'classes'],
      ['Not listed, so no agent can see them:', ...leftOut.map((line) => `  ${line}`)],
    );
  for (const { className, comments } of classes)
    commentOn(document, ['policy', 'classes', className], comments);
  for (const { className } of classes) flowLists(document, className);
  return document.toString({ lineWidth: 120 });
}

/** Where other classes have a tenant, a search of a class without one would show every tenant its rows. */
function withoutSharedSearch(one: GuessedClass): GuessedClass {
  const { tenant, vector, comments } = one;
  if (tenant !== null || vector === null) return one;
  const comment = `Not searchable by ${shortenName(vector)}: other classes have a tenant, and this one has none.`;
  return { ...one, vector: null, comments: [...comments, comment] };
}

function classEntry(one: GuessedClass, besideParse: boolean): object {
  const { className, collection, id, timestamps, properties, fields, largeFields, tenant, vector } = one;
  const texts = fields.filter((name) => properties[name]?.type === 'String');
  const rules = {
    fields,
    ...(largeFields.length > 0 && { largeFields }),
    ...(tenant !== null && { tenantScope: { field: tenant } }),
    ...(vector !== null && {
      searchable: {
        field: vector,
        ...(texts.length > 0 && { textFields: texts }),
        ...(tenant !== null && { filterFields: [tenant] }),
      },
    }),
  };
  const description = `Documents of ${shortenName(collection?.name ?? className)}`;
  if (collection === null) return { description, ...rules };
  return {
    description,
    ...(besideParse && { storage: 'plain' }),
    ...(collection.name !== className && { collection: collection.name }),
    ...(id !== undefined && { id }),
    ...(timestamps !== undefined && { timestamps }),
    ...(Object.keys(properties).length > 0 && { properties }),
    ...rules,
  };
}

/** Continuation lines are indented. */
function wrapText(text: string): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? '';
    if (last.trim() !== '' && last.length + word.length > LINE_WIDTH) lines.push(`  ${word}`);
    else lines[lines.length - 1] = lines.length === 1 && last === '' ? word : `${last} ${word}`;
  }
  return lines;
}

function commentOn(document: Document, path: readonly string[], lines: readonly string[]): void {
  const parent = document.getIn(path.slice(0, -1), true);
  if (!isMap(parent) || lines.length === 0) return;
  const pair = parent.items.find(
    (item) => isPair(item) && isScalar(item.key) && item.key.value === path.at(-1),
  );
  if (isScalar(pair?.key))
    pair.key.commentBefore = lines
      .flatMap(wrapText)
      .map((line) => ` ${line}`)
      .join('\n');
}

/** Short maps and lists on one line, as people write them. */
function flowLists(document: Document, className: string): void {
  const entry = document.getIn(['policy', 'classes', className], true) as YAMLMap;
  for (const name of ['fields', 'largeFields', 'timestamps', 'tenantScope', 'searchable']) {
    const node = entry.get(name, true) as unknown;
    if (isCollection(node)) node.flow = true;
  }
  const properties = entry.get('properties', true) as unknown;
  if (!isMap(properties)) return;
  for (const { value } of properties.items) if (isMap(value)) value.flow = true;
}
