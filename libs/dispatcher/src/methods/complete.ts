import { Refused } from '#agent';
import type { GovernedRecords } from '#data';
import { isJsonObject, type JsonObject, member } from '../json-object.js';
import type { ArgumentCompletion } from '../prompts/prompt.js';
import type { PromptRegistry } from '../prompts/prompt-registry.js';
import { invalidParams } from '../protocol-fault.js';
import type { RecordsSource } from '../records-source.js';
import type { MethodRequest } from './method.js';

/** Values per answer, as the protocol limits them. */
const MAX_VALUES = 100;
const TEMPLATE = /^parse:\/\/\{className\}\/(?:schema|count|samples)$/;

function starting(names: readonly string[], typed: string): string[] {
  const wanted = typed.toLowerCase();
  return names.filter((name) => name.toLowerCase().startsWith(wanted));
}

async function classNames(records: GovernedRecords): Promise<string[]> {
  return (await records.classes()).map(({ className }) => className);
}

async function fieldNames(
  records: GovernedRecords,
  className: unknown,
  pointersOnly: boolean,
): Promise<string[]> {
  if (typeof className !== 'string' || className === '') return [];
  try {
    const { fields, schema } = await records.describe(className);
    return fields.filter((field) => !pointersOnly || schema.fields.get(field)?.type === 'Pointer');
  } catch (fault) {
    // A class this agent may not know suggests nothing, exactly like one that does not exist.
    if (fault instanceof Refused) return [];
    throw fault;
  }
}

/** `completion/complete`: class and field names, as far as the agent may know them. */
export class Complete {
  constructor(
    private readonly registry: PromptRegistry,
    private readonly records: RecordsSource,
  ) {}

  async handle({ params, context }: MethodRequest): Promise<JsonObject> {
    const name = member(params.argument, 'name');
    const typed = member(params.argument, 'value');
    if (typeof name !== 'string' || typeof typed !== 'string') throw invalidParams();
    const completion = this.completionOf(params.ref, name);
    const found = completion
      ? await this.suggest(completion, typed, params.context, this.records.for(context))
      : [];
    const values = found.slice(0, MAX_VALUES);
    return { completion: { values, total: found.length, hasMore: found.length > values.length } };
  }

  private completionOf(ref: unknown, argument: string): ArgumentCompletion | undefined {
    const type = member(ref, 'type');
    if (type === 'ref/resource') {
      const uri = member(ref, 'uri');
      if (typeof uri !== 'string' || !TEMPLATE.test(uri)) throw invalidParams('Unknown resource template');
      if (argument !== 'className') throw invalidParams('Unknown argument');
      return { kind: 'class' };
    }
    if (type !== 'ref/prompt') throw invalidParams();
    const name = member(ref, 'name');
    const prompt = typeof name === 'string' ? this.registry.get(name) : undefined;
    if (!prompt) throw invalidParams('Unknown prompt');
    const declared = prompt.arguments.find((candidate) => candidate.name === argument);
    if (!declared) throw invalidParams('Unknown argument');
    return declared.completion;
  }

  private async suggest(
    completion: ArgumentCompletion,
    typed: string,
    context: unknown,
    records: GovernedRecords,
  ): Promise<string[]> {
    if (completion.kind === 'class') return starting(await classNames(records), typed);
    if (completion.kind === 'classes') {
      const listed = typed.slice(0, typed.lastIndexOf(',') + 1);
      const last = typed.slice(listed.length).trim();
      return starting(await classNames(records), last).map((found) => listed + found);
    }
    const others = member(context, 'arguments');
    const className = isJsonObject(others) ? member(others, completion.of) : undefined;
    return starting(await fieldNames(records, className, completion.pointersOnly ?? false), typed);
  }
}
