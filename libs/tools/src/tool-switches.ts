/** Switches of the policy that change what tools say (docs/policy.md#switches). */
export interface ToolSwitches {
  /** Rows carry `_source` telling where they came from. Default false. */
  readonly includeSourceProvenance: boolean;
  /** Reserved markers in schema text refuse the call instead of being neutralised. Default false. */
  readonly promptMarkerStrict: boolean;
  /** Schemas show the keys a declared method may write. Default false. */
  readonly agentDebug: boolean;
  /** CSV cells that a spreadsheet would run as a formula are prefixed with `'`. Default false: cells byte for byte. */
  readonly neutralizeFormulas: boolean;
}
