import type { Agent, ProgressUpdate, Tier } from '#agent';
import type { GovernedRecords, GovernedWrites, ParseRow } from '#data';
import type { JsonSchema } from './tool.js';

/** A domain action that an application offers on a class, as schemas tell of it. */
export interface DeclaredMethod {
  readonly name: string;
  readonly type: 'instance' | 'class';
  /** Lowest tier that may call it. */
  readonly permission: Tier;
  readonly description: string | null;
  readonly supportsDryRun: boolean;
  readonly parameters: JsonSchema | null;
  /** Argument keys it may write: the write boundary, shown only to debugging operators. */
  readonly permittedKeys: readonly string[] | null;
}

/** What a method gets besides its arguments. Everything on it is governed for the calling agent. */
export interface MethodCall {
  /** The class that declares it. */
  readonly className: string;
  /** The object the method was called on, as this agent may read it; null for class methods. */
  readonly receiver: ParseRow | null;
  /** Of the receiver; null for class methods. */
  readonly objectId: string | null;
  /** The data, as the calling agent may read it. */
  readonly records: GovernedRecords;
  /** For methods of tier write or admin that really run; a dry run gets none. */
  readonly writes: GovernedWrites | null;
  /** It is to tell what it would do, and to do nothing. */
  readonly dryRun: boolean;
  /** Ends when the client goes away or cancels, or the time is up. */
  readonly signal: AbortSignal;
  /** Told to the client; a report without a finite `progress` is passed over. */
  progress(update: ProgressUpdate): void;
  /** Only for methods that declare `agent: true`. */
  readonly agent: Agent | null;
}

export type MethodHandler = (args: Readonly<Record<string, unknown>>, call: MethodCall) => unknown;

export interface CallableMethod extends DeclaredMethod {
  /** The method asked to be told who is calling. */
  readonly wantsAgent: boolean;
  readonly handler: MethodHandler;
}

/** The methods that applications declared, by canonical class name. Without a provider of this port there are none. */
export abstract class DeclaredMethods {
  abstract of(className: string): readonly DeclaredMethod[];
}

/** The same methods with the code behind them: for what runs them, not for what tells of them. */
export abstract class CallableMethods extends DeclaredMethods {
  abstract find(className: string, name: string): CallableMethod | undefined;
}
