import { useEffect, useState } from 'preact/hooks';

/** What the address of the page names: `#/audit?agent=analyst`. */
export interface Address {
  readonly page: string;
  readonly filters: URLSearchParams;
}

/** The path of the console: its script is served below it. */
export const CONSOLE = new URL('../..', import.meta.url).pathname.replace(/\/$/, '');

type Filters = Readonly<Record<string, string | undefined>>;

export function readAddress(hash: string): Address {
  const [page = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  return { page, filters: new URLSearchParams(query) };
}

/** Empty filters are left out. */
export function toAddress(page: string, filters: Filters = {}): string {
  const given = Object.entries(filters).filter((pair): pair is [string, string] => (pair[1] ?? '') !== '');
  const query = new URLSearchParams(given).toString();
  return `#/${page}${query === '' ? '' : `?${query}`}`;
}

/** Opens a page; the back button returns to the one before. */
export function open(address: string): void {
  location.hash = address;
}

const ADDRESS_REPLACED = 'parley:address';

/** Changes filters without a step for the back button, as for text that somebody types. */
export function replaceAddress(address: string): void {
  history.replaceState(null, '', address);
  dispatchEvent(new Event(ADDRESS_REPLACED));
}

/** The same for some filters of the page that is open. The others stay as they are by now, whatever the page shows yet. */
export function narrowAddress(changed: Filters): void {
  const { page, filters } = readAddress(location.hash);
  replaceAddress(toAddress(page, { ...Object.fromEntries(filters), ...changed }));
}

export function useAddress(): Address {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const syncHash = () => setHash(location.hash);
    addEventListener('hashchange', syncHash);
    addEventListener(ADDRESS_REPLACED, syncHash);
    return () => {
      removeEventListener('hashchange', syncHash);
      removeEventListener(ADDRESS_REPLACED, syncHash);
    };
  }, []);
  return readAddress(hash);
}
