/** What is wrong with a history of records. */
type ChainFaultKind =
  'unreadable' | 'altered' | 'missing' | 'reordered' | 'repeated' | 'contradicted' | 'incomplete';

export interface ChainFault {
  readonly kind: ChainFaultKind;
  /** In words. */
  readonly told: string;
  readonly source: string;
  /** Null where nothing stands that could be pointed at. */
  readonly line: number | null;
  readonly chain?: string;
  readonly seq?: number;
}

/** In the order of reading, so that the first is where the trouble begins. */
export function inReadingOrder(faults: readonly ChainFault[], sources: readonly string[]): ChainFault[] {
  const place = new Map(sources.map((name, index) => [name, index]));
  const key = ({ source, line }: ChainFault): [number, number] => [
    place.get(source) ?? sources.length,
    line ?? Infinity,
  ];
  return faults.toSorted((a, b) => {
    const [sourceA, lineA] = key(a);
    const [sourceB, lineB] = key(b);
    return sourceA - sourceB || (lineA === lineB ? 0 : lineA - lineB);
  });
}
