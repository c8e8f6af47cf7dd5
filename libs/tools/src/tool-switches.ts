/** Process-wide switches that change what tools say (docs/policy.md#switches). */
export abstract class ToolSwitches {
  /** Rows carry `_source` telling where they came from. Default false. */
  abstract readonly includeSourceProvenance: boolean;
  /** Reserved markers in schema text refuse the call instead of being neutralised. Default false. */
  abstract readonly promptMarkerStrict: boolean;
  /** Schemas show the keys a declared method may write. Default false. */
  abstract readonly agentDebug: boolean;
  /** CSV cells that a spreadsheet would run as a formula are prefixed with `'`. Default false: cells byte for byte. */
  abstract readonly neutralizeFormulas: boolean;
}
