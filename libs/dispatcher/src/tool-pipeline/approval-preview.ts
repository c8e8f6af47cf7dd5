import type { ExecutionContext } from '@nestjs/common';
import { Refused, type Tier } from '#agent';
import { auditedArgumentNames } from '#audit';
import type { GovernedWrites } from '#data';
import type { ToolCall, ToolHandler } from '#tools';
import { digestOf } from '../asks/canonical-json.js';
import { isJsonObject, type JsonObject } from '../json-object.js';
import { proposedWrite, shownChange } from './proposed-change.js';
import { shownToApprover } from './shown-to-approver.js';
import { toolExecutionOf } from './tool-execution.js';

/** What a person decides upon. */
export interface ApprovalPreview {
  /** For the person: nothing that the caller may not read, and no credentials. */
  readonly shown: JsonObject;
  /** The class and row that it is about, when there is one. */
  readonly className?: string;
  readonly objectId?: string;
  /** Names all that the decision depends on: different, once the row, the call or the policy is. */
  readonly holdsFor: string;
}

/** What the decision depends on besides the call itself. */
export interface DecisionGround {
  readonly permission: Tier;
  readonly policyVersion: string;
}

interface Seen extends Omit<ApprovalPreview, 'holdsFor'> {
  /** As the caller may read it. */
  readonly row: unknown;
}

const asObject = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/**
 * What would come of a call, through doors of its own, so that what is decided much later asks about rights anew. A
 * declared method makes its dry run, a raw write is judged and shown as before and after, anything else is shown as
 * proposed.
 * @throws Refused for a raw write that would be refused: nobody needs to be asked
 */
export async function previewOf(host: ExecutionContext, ground: DecisionGround): Promise<ApprovalPreview> {
  const { name, args, anotherCall } = toolExecutionOf(host);
  const given = asObject(args);
  const call = anotherCall();
  const { row, ...seen } = await (name === 'call_method' ? dryRun(host, given, call) : proposal(given, call));
  return { ...seen, shown: shownToApprover(seen.shown), holdsFor: digestOf({ name, args, ground, row }) };
}

async function proposal(args: JsonObject, call: ToolCall): Promise<Seen> {
  const told = { tool: call.tool.name, args: shownArguments(args) };
  const write = proposedWrite(call.tool, args);
  if (!write || !('writes' in call)) return { shown: told, row: null };
  const judged = await (call.writes as GovernedWrites).judge(write);
  const { className, objectId, before } = judged;
  return {
    shown: { ...told, change: shownChange(write.operation, judged) },
    className,
    ...(objectId !== null && { objectId }),
    row: before,
  };
}

async function dryRun(host: ExecutionContext, args: JsonObject, call: ToolCall): Promise<Seen> {
  const handler = host.getHandler() as ToolHandler;
  const className = textOf(args['class_name']);
  const objectId = textOf(args['object_id']);
  const about = { ...(className && { className }), ...(objectId && { objectId }) };
  const rehearsed = { ...args, arguments: { ...asObject(args['arguments']), dry_run: true } };
  try {
    const shown = asObject(await withinSeconds(call.tool.timeout, async () => handler(rehearsed, call)));
    // What a dry run answers may differ from run to run: the object it is called on may not.
    const row = className && objectId ? (await call.records.getMany(className, [objectId])).rows : null;
    return { shown, ...about, row };
  } catch (error) {
    const told = error instanceof Refused ? error.refusal.message : 'no preview could be made';
    return {
      shown: { tool: call.tool.name, preview_error: told, args: shownArguments(args) },
      ...about,
      row: 'unknown',
    };
  }
}

/** The interceptors that bound a call are not around its preview. */
async function withinSeconds<T>(seconds: number, work: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the preview took too long')), seconds * 1000);
  });
  try {
    return await Promise.race([work(), expired]);
  } finally {
    clearTimeout(timer);
  }
}

function shownArguments(args: JsonObject): JsonObject {
  const names = new Set(auditedArgumentNames(args));
  return Object.fromEntries(Object.entries(args).filter(([name]) => names.has(name)));
}
