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

function notFound(uri: string, { era }: Dialect, message = 'Resource not found'): ProtocolFault {
  return new ProtocolFault(era === 'modern' ? RPC.invalidParams : RPC.resourceNotFound, message, { uri });
}

/** What is no address at all. The frozen revisions say so in a code of its own. */
function invalidUri(uri: string, dialect: Dialect): ProtocolFault {
  const message = `Invalid resource URI: ${uri}`;
  return dialect.additions ? notFound(uri, dialect, message) : invalidParams(message);
}

/**
 * Why an address is not served, in the code of the revision: -32002, and -32602 from 2026-07-28 on, for what does not exist or
 * is withheld. Reading and subscribing say it alike.
 */
export function refusedResource(uri: string, dialect: Dialect, refusal: Refusal): ProtocolFault {
  if (refusal.opaque) return invalidParams();
  // It can be read, and its changes can never be told.
  if (refusal.gate === 'subscription' && refusal.code === 'access_denied')
    return invalidParams(refusal.message);
  if (ABSENT.has(refusal.code)) return notFound(uri, dialect);
  return new ProtocolFault(RPC.internalError, refusal.message);
}

/** More than an answer may hold: the address is right, and its answer cannot be sent. */
function tooLarge(instead: string): ProtocolFault {
  return new ProtocolFault(RPC.internalError, `Resource exceeded ${MAX_RESPONSE_BYTES} bytes.${instead}`);
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
    if (!address) throw invalidUri(uri, dialect);
    const args = {
      class_name: address.className,
      ...(address.kind === 'samples' && { limit: SAMPLES }),
    };
    const outcome = await this.runner.run(TOOL_OF_KIND[address.kind], args, context);
    if (!outcome.ok) throw refusedResource(uri, dialect, outcome.refusal);
    if (exceedsResponseLimit(outcome.text)) {
      throw tooLarge(
        ` Call ${TOOL_OF_KIND[address.kind]} or query_class with a lower limit or fewer keys instead.`,
      );
    }
    return { contents: [{ uri, mimeType: MIME_TYPE, text: outcome.text }] };
  }

  private async readProvided(uri: string, context: CallContext, dialect: Dialect): Promise<JsonObject> {
    let contents: readonly EmbeddedResource[] | undefined;
    try {
      contents = await this.provided.read(uri, context);
    } catch (fault) {
      if (fault instanceof Refused) throw refusedResource(uri, dialect, fault.refusal);
      throw fault;
    }
    if (!contents) throw notFound(uri, dialect);
    if (contents.some((part) => exceedsResponseLimit('text' in part ? part.text : part.blob)))
      throw tooLarge('');
    return { contents };
  }
}
