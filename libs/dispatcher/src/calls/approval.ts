import type { ExecutionContext } from '@nestjs/common';
import { type CallContext, Refused, type Tier } from '#core';
import { auditedArgumentNames } from '#audit';
import type { GovernedWrites, JudgedWrite, ParseRow, ProposedWrite } from '#data';
import { fieldsOf, type ToolCall, type ToolDefinition, type ToolHandler } from '#tools';
import { toolExecutionOf } from './tool-execution.js';
import { canonicalJson, digestOf, isJsonObject, type JsonObject, member } from '../json-object.js';

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

/** A call that needs a yes. */
export interface ApprovalRequest {
  /** What is called. */
  readonly tool: ToolDefinition;
  /** As the agent wrote them. */
  readonly args: unknown;
  /** Who calls, and how long somebody waits for it. */
  readonly context: CallContext;
  /** The tier the call acts at: for call_method that of the method it names. */
  readonly effectivePermission: Tier;
  /** What a person is shown, made anew each time. Changes no data. @throws Refused when the call would be refused anyway */
  preview(): Promise<ApprovalPreview>;
}

/** What came of asking. A reason is for the record; the agent is told the outcome alone. */
export type ApprovalDecision = {
  /** Who decided, and through what; absent when nobody did. */
  readonly by?: { readonly principal: string; readonly via: 'client' | 'desk' };
  /** Given in an earlier run of the same call, and told then. */
  readonly again?: true;
} & ({ readonly outcome: 'approve' } | { readonly outcome: 'deny' | 'unavailable'; readonly reason: string });

/** Asks a person whether a gated call may run (docs/guide/policy.md#approval). Anything but `approve` refuses it. */
export abstract class Approver {
  /** Decides on one call, or says that nobody does. */
  abstract review(request: ApprovalRequest): Promise<ApprovalDecision>;
}

/** Bytes of a preview, as JSON. */
const MAX_PREVIEW = 16_384;
const MAX_TEXT = 500;
const MAX_ITEMS = 20;
const CREDENTIALS =
  /^(password|secret|token|credentials?|auth_?data|recovery_?codes|(session|access|refresh|api|private|master)_?(token|key))$/i;

/**
 * A preview as it leaves for a person: without values under names of credentials, which stay named, long text and lists
 * cut. What is too large even so is not shown at all.
 */
export function shownToApprover(preview: JsonObject): JsonObject {
  const withheld = new Set<string>();
  const shown = shorten(preview, withheld) as JsonObject;
  const told = withheld.size > 0 ? { ...shown, withheld: [...withheld].sort() } : shown;
  if (Buffer.byteLength(JSON.stringify(told)) <= MAX_PREVIEW) return told;
  return { tool: preview['tool'], preview_error: 'too large to be shown' };
}

function shorten(value: unknown, withheld: Set<string>): unknown {
  if (typeof value === 'string') return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value;
  if (Array.isArray(value)) {
    const items = value.slice(0, MAX_ITEMS).map((item) => shorten(item, withheld));
    return value.length > MAX_ITEMS ? [...items, `… ${value.length - MAX_ITEMS} more`] : items;
  }
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, held]) => {
      if (!CREDENTIALS.test(name)) return [[name, shorten(held, withheld)]];
      withheld.add(name);
      return [];
    }),
  );
}

type Arguments = Readonly<Record<string, unknown>>;

const OPERATIONS = new Map<string, ProposedWrite['operation']>([
  ['create_object', 'create'],
  ['update_object', 'update'],
  ['delete_object', 'delete'],
]);

/** The write that a call of a raw write tool stands for; `undefined` for every other call. */
export function proposedWrite({ name }: ToolDefinition, args: Arguments): ProposedWrite | undefined {
  const operation = OPERATIONS.get(name);
  const { class_name: className, object_id: objectId } = args;
  switch (operation) {
    case 'create':
      return { operation, className, fields: fieldsOf(args) };
    case 'update':
      return { operation, className, objectId, fields: fieldsOf(args) };
    case 'delete':
      return { operation, className, objectId };
    default:
      return undefined;
  }
}

/** What a write would change, as whoever approves it is shown it. */
export interface ShownChange {
  readonly operation: ProposedWrite['operation'];
  readonly class_name: string;
  readonly object_id?: string;
  /** Of the fields that change; all of a row that is removed. Absent where the caller may not read the row. */
  readonly before?: ParseRow;
  /** What they become; a field that is removed is null. Absent for a row that is removed. */
  readonly after?: ParseRow;
}

export function shownChange(operation: ProposedWrite['operation'], judged: JudgedWrite): ShownChange {
  const { className, objectId, before, fields } = judged;
  const shown = {
    operation,
    class_name: className,
    ...(objectId !== null && { object_id: objectId }),
  };
  if (!fields) return { ...shown, ...(before && { before }) };
  const names = Object.keys(fields);
  const held = before && Object.fromEntries(names.map((name) => [name, member(before, name) ?? null]));
  const after = Object.fromEntries(names.map((name) => [name, applied(held?.[name], fields[name])]));
  return { ...shown, ...(held && { before: held }), after };
}

/** What a stored value becomes; an operation on a value that is not known is shown as it is. */
function applied(held: unknown, written: unknown): unknown {
  if (!isJsonObject(written) || typeof written['__op'] !== 'string') return written;
  const objects: unknown[] = Array.isArray(written['objects']) ? written['objects'] : [];
  const list: unknown[] | null = held === null ? [] : Array.isArray(held) ? held : null;
  switch (written['__op']) {
    case 'Delete':
      return null;
    case 'Increment': {
      const start = held === null ? 0 : held;
      const { amount } = written;
      return typeof start === 'number' && typeof amount === 'number' ? start + amount : written;
    }
    case 'Add':
      return list ? [...list, ...objects] : written;
    case 'AddUnique': {
      const known = new Set(list?.map(canonicalJson));
      return list ? [...list, ...objects.filter((one) => !known.has(canonicalJson(one)))] : written;
    }
    case 'Remove': {
      const removed = new Set(objects.map(canonicalJson));
      return list ? list.filter((one) => !removed.has(canonicalJson(one))) : written;
    }
    default:
      return written;
  }
}
