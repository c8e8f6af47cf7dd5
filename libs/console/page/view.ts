/** One place of the page. */
export interface View {
  /** As it stands in the address, and what it is called. */
  readonly name: string;
  readonly title: string;
  /**
   * Shows it.
   * @param signal ends when it is left: whatever goes on ends with it
   */
  show(root: HTMLElement, signal: AbortSignal): Promise<void> | void;
  /** Keys of this place alone, beside those of the page. */
  readonly keys?: Readonly<Record<string, { readonly does: string; readonly run: () => void }>>;
}
