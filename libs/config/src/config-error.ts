/** One thing wrong with the configuration, and where. */
export interface ConfigIssue {
  /** Dotted path inside the file, or the environment variable. */
  readonly path: string;
  /** What is wrong with it; never repeats a secret. */
  readonly message: string;
  /** The keys or values that are accepted there, where they can be listed. */
  readonly accepted?: readonly string[];
  /** The accepted key that was most likely meant. */
  readonly suggestion?: string;
  /** Other options that this depends on; `auth.*`: whatever is within one. While one of them has an error, this one is not reported. */
  readonly related?: readonly string[];
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
    super(
      [
        `${source} cannot be used:`,
        ...issues.map(({ path, message }) => `  ${path === '' ? '(file)' : path}: ${message}`),
      ].join('\n'),
    );
  }
}
