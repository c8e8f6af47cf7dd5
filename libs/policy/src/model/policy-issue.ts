/** An invalid declaration: its path and the reason. */
export interface PolicyIssue {
  readonly path: string;
  readonly message: string;
  /** Other options that this depends on. */
  readonly related?: readonly string[];
}
