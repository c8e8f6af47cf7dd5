const WINDOWS = [
  ['1h', 'Hour'],
  ['24h', 'Day'],
  ['7d', 'Week'],
] as const;

/** The window that the address names. Default: the hour. */
export function readWindow(filters: URLSearchParams): string {
  return WINDOWS.find(([key]) => key === filters.get('window'))?.[0] ?? '1h';
}

/** Leads to the same page for another time. */
export function WindowSwitch(props: { chosen: string; toAddress: (window: string) => string }) {
  const { chosen, toAddress } = props;
  return (
    <ul class="switch" aria-label="Time">
      {WINDOWS.map(([key, text]) => (
        <li key={key}>
          <a href={toAddress(key)} aria-current={key === chosen ? 'true' : undefined}>
            {text}
          </a>
        </li>
      ))}
    </ul>
  );
}
