import { type CallContext, type ErrorCode, type Refusal, Refused } from '#agent';
import type { EmbeddedResource, ToolRunner } from '#tools';
import type { JsonObject } from '../json-object.js';
import { invalidParams, ProtocolFault, RPC } from '../protocol-fault.js';
import type { Dialect } from '../protocol-versions.js';
import { exceedsResponseLimit, MAX_RESPONSE_BYTES } from '../response-limit.js';
import { MIME_TYPE, TOOL_OF_KIND } from './list-resources.js';
import type { MethodRequest } from './method.js';
import type { ProvidedResources } from './provided-resources.js';
import { parseResourceUri } from './resource-uri.js';

const SAMPLES = 5;

/** Refusals that mean: for this agent there is no such resource. */
const ABSENT: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'access_denied',
  'permission_denied',
  'tool_filtered',
  'invalid_argument',
]);

function notFound(uri: string, dialect: Dialect, message: string): ProtocolFault {
  if (!dialect.additions) return invalidParams(message);
  return new ProtocolFault(dialect.era === 'modern' ? RPC.invalidParams : RPC.resourceNotFound, message, {
    uri,
  });
}

function refused(uri: string, dialect: Dialect, refusal: Refusal): ProtocolFault {
  if (refusal.opaque) return invalidParams();
  if (dialect.additions && ABSENT.has(refusal.code)) return notFound(uri, dialect, 'Resource not found');
  return new ProtocolFault(RPC.internalError, refusal.message);
}

/** `resources/read`: the text of the tool that answers for the address, under that tool's gates. */
export class ReadResource {
  constructor(
    private readonly runner: ToolRunner,
    private readonly provided: ProvidedResources,
  ) {}

  async handle({ params, context, dialect }: MethodRequest): Promise<JsonObject> {
    const { uri } = params;
    if (typeof uri !== 'string') throw invalidParams('Missing resource uri');
    if (this.provided.has(uri)) return this.readProvided(uri, context, dialect);
    const address = parseResourceUri(uri);
    if (!address) throw notFound(uri, dialect, `Invalid resource URI: ${uri}`);
    const args = {
      class_name: address.className,
      ...(address.kind === 'samples' && { limit: SAMPLES }),
    };
    const outcome = await this.runner.run(TOOL_OF_KIND[address.kind], args, context);
    if (!outcome.ok) throw refused(uri, dialect, outcome.refusal);
    if (exceedsResponseLimit(outcome.text)) {
      throw invalidParams(
        `Resource exceeded ${MAX_RESPONSE_BYTES} bytes. Call ${TOOL_OF_KIND[address.kind]} or query_class with a lower limit or fewer keys instead.`,
      );
    }
    return { contents: [{ uri, mimeType: MIME_TYPE, text: outcome.text }] };
  }

  private async readProvided(uri: string, context: CallContext, dialect: Dialect): Promise<JsonObject> {
    let contents: readonly EmbeddedResource[] | undefined;
    try {
      contents = await this.provided.read(uri, context);
    } catch (fault) {
      if (fault instanceof Refused) throw refused(uri, dialect, fault.refusal);
      throw fault;
    }
    if (!contents) throw notFound(uri, dialect, 'Resource not found');
    if (contents.some((part) => exceedsResponseLimit('text' in part ? part.text : part.blob)))
      throw invalidParams(`Resource exceeded ${MAX_RESPONSE_BYTES} bytes.`);
    return { contents };
  }
}
