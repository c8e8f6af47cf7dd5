import type { Tier } from '#agent';
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

/** The methods that applications declared, by class. Without a provider of this port there are none. */
export abstract class DeclaredMethods {
  abstract of(className: string): readonly DeclaredMethod[];
}
