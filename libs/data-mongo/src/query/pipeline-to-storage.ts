import { setOwn } from '#core';
import { BSON, type Document } from 'mongodb';
import type { AggregateQuery, ParseRow, SchemaCatalogue } from '#data';
import { type GovernedPipeline, type SchemaSnapshot, isPlainObject } from '#policy';
import { untranslatable } from '../errors.js';
import type { ClassStorage, ValueForm } from '../storage/class-storage.js';
import { isInternalColumn } from '../storage/parse-storage.js';
import { StoredClasses } from '../storage/stored-classes.js';
import {
  type MappedPipeline,
  NO_VARIABLES,
  type StageContext,
  type Variables,
} from './expression-to-storage.js';
import { RowScope } from './row-scope.js';
import { STAGES } from './stage-to-storage.js';

interface PipelineOptions {
  /** Turns joins between pointers and ids into ones that match. Default true. */
  readonly rewriteLookups?: boolean;
}

/**
 * A governed pipeline over one class in storage names. Internal columns are removed at every source, outer and joined, after
 * the leading stages that only select rows.
 * @throws StoreError `invalid_query` for stages and operands that cannot be translated
 */
export function pipelineToStorage(
  pipeline: GovernedPipeline,
  className: string,
  schemas: SchemaSnapshot,
  options: PipelineOptions = {},
): MappedPipeline {
  const classes = StoredClasses.of(schemas);
  return new PipelineTranslator(classes, options.rewriteLookups ?? true).source(
    pipeline,
    classes.storage(className),
    NO_VARIABLES,
  );
}

class PipelineTranslator {
  constructor(
    private readonly classes: StoredClasses,
    private readonly rewriteLookups: boolean,
  ) {}

  source(stages: GovernedPipeline, storage: ClassStorage, variables: Variables): MappedPipeline {
    const scope = RowScope.ofClass(storage);
    const source = storage.source(stages);
    const context = this.createContext(variables);
    const mapped = this.stages(stages.slice(0, source.at), scope, context);
    mapped.push(...source.stages);
    if (source.storage !== storage) scope.become(RowScope.ofClass(source.storage));
    mapped.push(...this.stages(stages.slice(source.at), scope, context));
    return { stages: mapped, scope };
  }

  private stages(stages: GovernedPipeline, scope: RowScope, context: StageContext): Document[] {
    const mapped: Document[] = [];
    for (const stage of stages) {
      const names = Object.keys(stage);
      const [name] = names;
      const translate = name !== undefined && Object.hasOwn(STAGES, name) ? STAGES[name] : undefined;
      if (!translate || name === undefined || names.length > 1)
        throw untranslatable(`'${name}' is not a stage that can run here`);
      mapped.push(...translate(stage[name], scope, context));
    }
    return mapped;
  }

  private createContext(variables: Variables): StageContext {
    const context: StageContext = {
      rewriteLookups: this.rewriteLookups,
      variables,
      findStorage: (className) => this.classes.storage(className),
      convertJoinedPipeline: (stages, storage, bound) => this.source(stages, storage, bound),
      branch: (stages, scope) => ({ stages: this.stages(stages, scope, context), scope }),
    };
    return context;
  }
}

const keepKey = (key: string): boolean => !isInternalColumn(key);

/** The governed records check the rights of an object inside a row and remove the ACL afterwards. */
const keepNestedKey = (key: string): boolean => key === '_rperm' || keepKey(key);

/** A result document of a pipeline: values as JSON with dates as text, under the names that its caller wrote. */
export function aggregateRow(document: Document, scope: RowScope): ParseRow {
  const row: ParseRow = {};
  for (const column of Object.keys(document)) {
    if (!keepKey(column)) continue;
    const value = contentValue(document[column], scope.findContent(column), scope.form);
    for (const name of scope.listNames(column)) setOwn(row, name, value);
  }
  return row;
}

function contentValue(
  value: unknown,
  content: ReturnType<RowScope['findContent']>,
  form: ValueForm,
): unknown {
  const { rows, field, list } = content;
  if (rows && Array.isArray(value)) return value.map((member) => contentValue(member, content, form));
  if (rows && isPlainObject(value)) return aggregateRow(value, rows);
  if (list && Array.isArray(value))
    return value.map((member) => form.resultFromStorage(member, field, keepNestedKey));
  return form.resultFromStorage(value, field, keepNestedKey);
}

/** A pipeline over stored columns in extended JSON, and the conversion of its documents to rows. */
interface ExtendedJsonPipeline {
  /** The collection of its input. */
  readonly collection: string;
  readonly stages: readonly Readonly<Record<string, unknown>>[];
  rows(documents: readonly unknown[]): ParseRow[];
}

/**
 * In extended JSON `{ $regex: TEXT }` is a pattern as a whole: a reader would lose the other conditions of the object. Where the
 * text is a pattern already, the object stays one.
 */
function writePatterns(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(writePatterns);
  if (!isPlainObject(value)) return value;
  const { $regex: pattern, $options: options, ...others } = value;
  if (typeof pattern !== 'string') return mapMembers(value);
  return {
    $regex: new BSON.BSONRegExp(pattern, typeof options === 'string' ? options : ''),
    ...mapMembers(others),
  };
}

function mapMembers(document: Document): Document {
  const mapped: Document = {};
  for (const [key, member] of Object.entries(document)) setOwn(mapped, key, writePatterns(member));
  return mapped;
}

/** Pipelines in storage form, for callers that do not run them with the driver. */
export class ExtendedJsonPipelines {
  constructor(private readonly catalogue: SchemaCatalogue) {}

  /** @throws StoreError `invalid_query` for stages and operands that cannot be translated */
  async pipeline({ pipeline, className, rewriteLookups }: AggregateQuery): Promise<ExtendedJsonPipeline> {
    const schemas = await this.catalogue.snapshot();
    const { stages, scope } = pipelineToStorage(pipeline, className, schemas, {
      rewriteLookups: rewriteLookups ?? true,
    });
    return {
      collection: StoredClasses.of(schemas).storage(className).collection,
      stages: BSON.EJSON.serialize(writePatterns(stages)) as Document[],
      rows: (documents) =>
        documents.map((document) => aggregateRow(BSON.EJSON.deserialize(document as Document), scope)),
    };
  }
}
