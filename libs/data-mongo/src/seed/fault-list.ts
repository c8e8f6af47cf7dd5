import { isPlainObject } from '../storage/own-property.js';

/** Collects what is wrong with a document, so that all of it can be told at once. */
export class FaultList {
  readonly faults: string[] = [];

  add(path: string, problem: string): void {
    this.faults.push(`${path}: ${problem}`);
  }

  /** The object at a path, or an empty one after noting the fault. */
  object(value: unknown, path: string, known?: readonly string[]): Record<string, unknown> {
    if (!isPlainObject(value)) {
      this.add(path, 'must be an object');
      return {};
    }
    for (const key of known ? Object.keys(value) : []) {
      if (!known?.includes(key)) this.add(`${path}.${key}`, `unknown key; known: ${known?.join(', ')}`);
    }
    return value;
  }

  list(value: unknown, path: string): readonly unknown[] {
    if (value === undefined) return [];
    if (Array.isArray(value)) return value;
    this.add(path, 'must be a list');
    return [];
  }

  strings(value: unknown, path: string): readonly string[] {
    return this.list(value, path).filter((entry, index): entry is string => {
      if (typeof entry === 'string') return true;
      this.add(`${path}[${index}]`, 'must be text');
      return false;
    });
  }

  text(value: unknown, path: string): string | undefined {
    if (typeof value === 'string' && value !== '') return value;
    this.add(path, 'must be text');
    return undefined;
  }

  optionalText(value: unknown, path: string): string | undefined {
    return value === undefined ? undefined : this.text(value, path);
  }

  date(value: unknown, path: string): Date | undefined {
    const iso: unknown = isPlainObject(value) && value['__type'] === 'Date' ? value['iso'] : value;
    const date = new Date(typeof iso === 'string' ? iso : Number.NaN);
    if (!Number.isNaN(date.getTime())) return date;
    this.add(path, 'must be an ISO 8601 date');
    return undefined;
  }

  /** Notes a value that was seen before in the same set. */
  unique(seen: Set<string>, value: string, path: string): void {
    if (seen.has(value)) this.add(path, `'${value}' is used twice`);
    seen.add(value);
  }
}
