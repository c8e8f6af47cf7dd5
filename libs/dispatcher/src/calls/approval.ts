import { cutText, type McpRequest, Refused, type Tier, isJsonObject, type JsonObject, member } from '#core';
import { listArgumentNames } from '#audit';
import type { GovernedWrites, JudgedWrite, ParseRow, ProposedWrite } from '#data';
import { readFields, type SetPreview, type ToolCall, type ToolDefinition, type ToolHandler } from '#tools';
import type { ParleyToolCall } from './tool-call.js';
import { canonicalJson, computeDigest } from '../protocol.js';

/** What an approver decides on. */
export interface ApprovalPreview {
  /** For the approver: contains nothing that the caller may not read, and no credentials. */
  readonly shown: JsonObject;
  /** The class and row of the call, if it has one. */
  readonly className?: string;
  readonly objectId?: string;
  /** The change set of the call, if it is about one. */
  readonly changeSet?: string;
  /** The classes of the rows of that set. */
  readonly classNames?: readonly string[];
  /** Digest of everything that the decision depends on. It changes with the row, the call or the policy. */
  readonly holdsFor: string;
}

/** What the decision depends on besides the call itself. */
export interface DecisionGround {
  readonly permission: Tier;
  readonly policyVersion: string;
}

interface Seen extends Omit<ApprovalPreview, 'holdsFor'> {
  /** The row as the caller may read it. */
  readonly row: unknown;
}

const asObject = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});
const readText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/**
 * Computes the effect of a call, and closes the data access, so that a later decision checks permissions again. A
 * declared method runs as a dry run, a raw write is checked and shown before and after, any other call is shown as
 * proposed.
 * @throws Refused for a raw write that would be refused, because it needs no approval
 */
export async function createPreview(call: ParleyToolCall, ground: DecisionGround): Promise<ApprovalPreview> {
  const { name, args, handler } = call;
  const given = asObject(args);
  try {
    const { row, ...seen } = await (name === 'call_method'
      ? dryRun(handler, given, call)
      : proposal(given, call));
    return {
      ...seen,
      shown: showToApprover(seen.shown),
      holdsFor: computeDigest({ name, args, ground, row }),
    };
  } finally {
    call.closeAccess();
  }
}

/** A whole change set, as its approver sees it. It is decided for the set as it is, and for the rows as they are. */
export function createSetPreview(
  { name, args }: Pick<ParleyToolCall, 'name' | 'args'>,
  ground: DecisionGround,
  { id, digest, classNames, shown, row }: SetPreview,
): ApprovalPreview {
  return {
    shown: showToApprover({ tool: name, ...shown }),
    changeSet: id,
    classNames,
    holdsFor: computeDigest({ name, args, ground, digest, row }),
  };
}

async function proposal(args: JsonObject, call: ParleyToolCall): Promise<Seen> {
  const preview = { tool: call.tool.name, args: showArguments(args) };
  const write = findProposedWrite(call.tool, args);
  const writes: GovernedWrites | undefined = call.writes;
  if (!write || !writes) return { shown: preview, row: null };
  const judged = await writes.judge(write);
  const { className, objectId, before } = judged;
  return {
    shown: { ...preview, change: showChange(write.operation, judged) },
    className,
    ...(objectId !== null && { objectId }),
    row: before,
  };
}

async function dryRun(handler: ToolHandler, args: JsonObject, call: ToolCall): Promise<Seen> {
  const className = readText(args['class_name']);
  const objectId = readText(args['object_id']);
  const about = { ...(className && { className }), ...(objectId && { objectId }) };
  const dryRunArguments = { ...args, arguments: { ...asObject(args['arguments']), dry_run: true } };
  try {
    const shown = asObject(
      await withinSeconds(call.tool.timeout, async () => handler(dryRunArguments, call)),
    );
    // The result of a dry run may differ from run to run. The target object may not.
    const row = className && objectId ? (await call.records.getMany(className, [objectId])).rows : null;
    return { shown, ...about, row };
  } catch (error) {
    const preview = error instanceof Refused ? error.refusal.message : 'no preview could be made';
    return {
      shown: { tool: call.tool.name, preview_error: preview, args: showArguments(args) },
      ...about,
      row: 'unknown',
    };
  }
}

/** A preview runs outside the interceptors that limit a call, so it has its own timeout. */
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

function showArguments(args: JsonObject): JsonObject {
  const names = new Set(listArgumentNames(args));
  return Object.fromEntries(Object.entries(args).filter(([name]) => names.has(name)));
}

/** A call that needs an approval. */
export interface ApprovalRequest {
  /** The tool that is called. */
  readonly tool: ToolDefinition;
  /** The arguments as the agent sent them. */
  readonly args: unknown;
  /** The caller, and how long it waits for the decision. */
  readonly context: McpRequest;
  /** The tier of the call. For `call_method` it is the tier of the method. */
  readonly effectivePermission: Tier;
  /** The version of the policy that asks for the approval. */
  readonly policyVersion: string;
  /** Whether the policy and the agent are still those that ask: a decision counts for no others. */
  isCurrent(): boolean;
  /**
   * Builds the preview for the approver, each time it is requested. Changes no data. @throws Refused when the call would be
   * refused anyway
   */
  preview(): Promise<ApprovalPreview>;
}

/** Why an approval does not count that was given for another policy, or another agent. */
export const APPROVAL_LAPSED =
  'approval no longer applies: the policy, or what this agent may do, has changed since it was asked for; call again';

/** The result of an approval request. The reason goes to the audit record; the agent receives only the outcome. */
export type ApprovalDecision = {
  /** Who decided and by which channel; absent when no approver decided. */
  readonly by?: { readonly principal: string; readonly via: 'client' | 'desk' };
  /** The case that another person decided, or was asked to. */
  readonly caseId?: string;
  /** The decision was given and reported in an earlier run of the same call. */
  readonly again?: true;
} & ({ readonly outcome: 'approve' } | { readonly outcome: 'deny' | 'unavailable'; readonly reason: string });

/** Requests approval for a gated call (docs/guide/policy.md#approval). Any result except `approve` refuses the call. */
export abstract class Approver {
  /** Decides on one call, or reports that no approver is available. */
  abstract review(request: ApprovalRequest): Promise<ApprovalDecision>;
}

/** Maximum size of a preview as JSON, in bytes. */
const MAX_PREVIEW = 16_384;
const MAX_TEXT = 500;
const MAX_ITEMS = 20;
const CREDENTIALS =
  /^(password|secret|token|credentials?|auth_?data|recovery_?codes|(session|access|refresh|api|private|master)_?(token|key))$/i;

/**
 * Returns a preview in the form an approver receives. Values under credential names are removed and the names stay;
 * long texts and lists are cut. A preview that is still too large is not shown.
 */
export function showToApprover(preview: JsonObject): JsonObject {
  const withheld = new Set<string>();
  const shown = shorten(preview, withheld) as JsonObject;
  const shownText = withheld.size > 0 ? { ...shown, withheld: [...withheld].sort() } : shown;
  if (Buffer.byteLength(JSON.stringify(shownText)) <= MAX_PREVIEW) return shownText;
  return { tool: preview['tool'], preview_error: 'too large to be shown' };
}

function shorten(value: unknown, withheld: Set<string>): unknown {
  if (typeof value === 'string') {
    const shown = cutText(value, MAX_TEXT);
    return shown === value ? value : `${shown}… ${value.length - shown.length} more characters`;
  }
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

/** The write that a call of a raw write tool represents; `undefined` for every other call. */
export function findProposedWrite({ name }: ToolDefinition, args: Arguments): ProposedWrite | undefined {
  const operation = OPERATIONS.get(name);
  const { class_name: className, object_id: objectId } = args;
  switch (operation) {
    case 'create':
      return { operation, className, fields: readFields(args) };
    case 'update':
      return { operation, className, objectId, fields: readFields(args) };
    case 'delete':
      return { operation, className, objectId };
    default:
      return undefined;
  }
}

/** The change of a write, as its approver sees it. */
export interface PreviewedChange {
  readonly operation: ProposedWrite['operation'];
  readonly class_name: string;
  readonly object_id?: string;
  /** Values of the changed fields, or all fields of a removed row. Absent where the caller may not read the row. */
  readonly before?: ParseRow;
  /** New values of the fields; a removed field is null. Absent for a removed row. */
  readonly after?: ParseRow;
}

export function showChange(operation: ProposedWrite['operation'], judged: JudgedWrite): PreviewedChange {
  const { className, objectId, before, fields } = judged;
  const shown = {
    operation,
    class_name: className,
    ...(objectId !== null && { object_id: objectId }),
  };
  if (!fields) return { ...shown, ...(before && { before }) };
  const names = Object.keys(fields);
  const held = before && Object.fromEntries(names.map((name) => [name, member(before, name) ?? null]));
  const after = Object.fromEntries(names.map((name) => [name, applyChange(held?.[name], fields[name])]));
  return { ...shown, ...(held && { before: held }), after };
}

/** Computes the new value of a stored field. An operation on an unknown value is shown as it is. */
function applyChange(held: unknown, written: unknown): unknown {
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
