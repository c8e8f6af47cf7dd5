import type { Document } from 'mongodb';
import type { GovernedPipeline, SchemaSnapshot } from '#policy';
import { untranslatable } from '../errors.js';
import { StoredClasses } from '../storage/stored-classes.js';
import type { StorageNames } from '../storage/storage-names.js';
import { NO_VARIABLES, type Variables } from './expression-to-storage.js';
import { RowScope } from './row-scope.js';
import { sourceStrip } from './source-strip.js';
import type { MappedPipeline, StageContext } from './stage-context.js';
import { STAGES } from './stage-to-storage.js';

export interface PipelineOptions {
  /** Turns joins between pointers and ids into ones that match. Default true. */
  readonly rewriteLookups?: boolean;
}

/**
 * A governed pipeline over one class in storage names. Internal columns are dropped at every source, outer and joined,
 * behind the leading stages that only choose rows.
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
    classes.names(className),
    NO_VARIABLES,
  );
}

class PipelineTranslator {
  constructor(
    private readonly classes: StoredClasses,
    private readonly rewriteLookups: boolean,
  ) {}

  source(stages: GovernedPipeline, names: StorageNames, variables: Variables): MappedPipeline {
    const scope = RowScope.ofClass(names);
    const strip = sourceStrip(names.className, stages);
    const chosen = this.stages(stages.slice(0, strip.at), scope, variables);
    return {
      stages: [...chosen, ...strip.stages, ...this.stages(stages.slice(strip.at), scope, variables)],
      scope,
    };
  }

  private stages(stages: GovernedPipeline, scope: RowScope, variables: Variables): Document[] {
    const context = this.contextOf(variables);
    return stages.flatMap((stage) => {
      const [name, ...others] = Object.keys(stage);
      const translate = name !== undefined && Object.hasOwn(STAGES, name) ? STAGES[name] : undefined;
      if (!translate || name === undefined || others.length > 0)
        throw untranslatable(`'${name}' is not a stage that can run here`);
      return translate(stage[name], scope, context);
    });
  }

  private contextOf(variables: Variables): StageContext {
    return {
      rewriteLookups: this.rewriteLookups,
      variables,
      namesOf: (className) => this.classes.names(className),
      joinedPipeline: (stages, names, bound) => this.source(stages, names, bound),
      branch: (stages, scope) => ({ stages: this.stages(stages, scope, variables), scope }),
    };
  }
}
