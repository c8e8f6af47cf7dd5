import { refusals } from '#agent';
import type { ToolRunner } from '#tools';
import { isJsonObject, type JsonObject } from '../json-object.js';
import { invalidParams } from '../protocol-fault.js';
import type { MethodRequest } from './method.js';
import { checkParameterHeaders } from './parameter-headers.js';
import type { ToolCatalogue } from './tool-catalogue.js';
import { failedResult, toolResult } from './tool-result.js';

/** `tools/call`: hands the call to the tool pipeline and words its outcome. */
export class CallTool {
  constructor(
    private readonly runner: ToolRunner,
    private readonly catalogue: ToolCatalogue,
  ) {}

  async handle({ params, context, dialect }: MethodRequest): Promise<JsonObject> {
    const { name } = params;
    if (typeof name !== 'string') throw invalidParams('Missing tool name');
    const modern = dialect.era === 'modern';
    if (modern && !this.runner.has(name)) throw invalidParams(`Unknown tool: ${name}`);
    const args = params.arguments ?? {};
    if (!isJsonObject(args)) {
      if (!modern) throw invalidParams();
      return failedResult(refusals.invalidArgument('arguments must be an object'));
    }
    if (modern && context.parameterHeader) {
      const tool = this.catalogue.for(context).find(name);
      if (tool) checkParameterHeaders(tool, args, context);
    }
    const outcome = await this.runner.run(name, args, context);
    return toolResult(outcome, dialect, context.signal);
  }
}
