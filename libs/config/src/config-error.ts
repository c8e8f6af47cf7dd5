import { nearKey } from '#schema';

/** The error for the name of an agent that does not exist. */
export function noAgent(
  name: string,
  agents: Readonly<Record<string, unknown>> | ReadonlySet<string>,
): Pick<ConfigIssue, 'message' | 'accepted' | 'related'> {
  const accepted = agents instanceof Set ? [...(agents as ReadonlySet<string>)] : Object.keys(agents);
  const near = nearKey(name, accepted);
  const meant = near === null ? `; there are: ${accepted.join(', ')}` : `; did you mean '${near}'?`;
  return { message: `no agent named '${name}'${meant}`, accepted, related: [`agents.${name}`] };
}

/** One thing wrong with the configuration, and where. */
export interface ConfigIssue {
  /** Dotted path inside the file, or the environment variable. */
  readonly path: string;
  /** Where the file says it: `parley.yaml:12:5`; or the environment variable that does. Absent where neither does. */
  readonly at?: string;
  /** What is wrong with it; never repeats a secret. */
  readonly message: string;
  /** The keys or values that are accepted there, where they can be listed. */
  readonly accepted?: readonly string[];
  /** The accepted key that was most likely meant. */
  readonly suggestion?: string;
  /** Other options that this depends on; `auth.*`: whatever is within one. While one of them has an error, this one is not reported. */
  readonly related?: readonly string[];
}

/** An issue as one line: its place in the file, its path, and what is wrong. */
export function describeIssue({ at, path, message }: ConfigIssue): string {
  const places = [at, path].filter((place) => place !== undefined && place !== '');
  return `${places.length === 0 ? '(file)' : places.join(' ')}: ${message}`;
}

/** Why a file could not be read, and what to do where that is a right. */
export function describeUnreadable(error: unknown): string {
  const { code = 'unknown' } = error as NodeJS.ErrnoException;
  return `cannot be read (${code})${code === 'EACCES' ? ': let the user of this process read it' : ''}`;
}

/** The same error with the places of its issues; any other as it is. */
export function locateError(
  error: unknown,
  locate: (issues: readonly ConfigIssue[]) => readonly ConfigIssue[],
): unknown {
  return error instanceof ConfigError ? new ConfigError(error.source, locate(error.issues)) : error;
}

/** The configuration cannot be served; the message lists every error, one line each. */
export class ConfigError extends Error {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'ConfigError';
  constructor(
    /** The file, or what else was read. */
    readonly source: string,
    /** All of them. */
    readonly issues: readonly ConfigIssue[],
  ) {
    super([`${source} cannot be used:`, ...issues.map((issue) => `  ${describeIssue(issue)}`)].join('\n'));
  }
}
