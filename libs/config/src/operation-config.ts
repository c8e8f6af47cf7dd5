/** Reading the configuration anew while the service runs (docs/reload.md). */
export interface ReloadConfig {
  /** Whether the file is looked at; without it only SIGHUP has it read anew. Default true. */
  readonly watch: boolean;
  /** Seconds between two looks. Default 2. */
  readonly interval: number;
}

export interface ApprovalsConfig {
  /** Who is asked when the policy wants approval: whoever sits at the calling client, another person, or first one and then the other. Default `client`. */
  readonly mode: 'client' | 'desk' | 'both';
  /** Names of the agents that decide at the desk. Default none. */
  readonly approvers: readonly string[];
  /** Is told of cases that wait at the desk; `secret` signs what it is told. Default none. */
  readonly webhook: { readonly url: string; readonly secret: string } | null;
  /** Seconds that a case waits at the desk, and that an approval there may be used. Default 300. */
  readonly expiry: number;
}

/** The operators' page (docs/console.md). */
export interface ConsoleConfig {
  /** Names of the agents that may see it. Null, the default: it is not served. */
  readonly operators: readonly string[] | null;
}

export const DEFAULT_RELOAD: ReloadConfig = Object.freeze({ watch: true, interval: 2 });

export const DEFAULT_APPROVALS: ApprovalsConfig = Object.freeze({
  mode: 'client',
  approvers: [],
  webhook: null,
  expiry: 300,
});

export const DEFAULT_CONSOLE: ConsoleConfig = Object.freeze({ operators: null });
