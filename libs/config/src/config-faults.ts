/** One thing wrong with the configuration, and where. */
export interface ConfigFault {
  /** Dotted path inside the file, or the environment variable. */
  readonly path: string;
  readonly message: string;
}

/** The configuration cannot be served; the message lists every fault, one line each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(
    readonly source: string,
    readonly faults: readonly ConfigFault[],
  ) {
    super(
      [
        `${source} cannot be used:`,
        ...faults.map(({ path, message }) => `  ${path === '' ? '(file)' : path}: ${message}`),
      ].join('\n'),
    );
  }
}
