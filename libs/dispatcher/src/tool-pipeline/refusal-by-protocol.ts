import { type Refusal, refusals, Unauthorized } from '#agent';
import { ProtocolFault, RPC } from '../protocol-fault.js';

/**
 * What a call ended in that the protocol answers and not the tool, as records know it. Null for what is no end: a question
 * to the client, or a task that goes on.
 */
export function refusalByProtocol(fault: unknown): Refusal | null {
  if (fault instanceof Unauthorized) return refusals.identityUnresolved(fault.cause ?? fault.message);
  if (!(fault instanceof ProtocolFault)) return null;
  const refusal =
    fault.code === RPC.missingCapability
      ? refusals.notImplemented(fault.message)
      : refusals.invalidArgument(fault.message);
  return { ...refusal, gate: 'protocol' };
}
