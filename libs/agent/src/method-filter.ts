import { canonicalClassName } from './class-names.js';
import { NameFilter } from './name-filter.js';

/** An entry without a dot names a method of any class. */
function spelled(entry: string): string {
  const dot = entry.lastIndexOf('.');
  return dot < 0 ? entry : `${canonicalClassName(entry.slice(0, dot))}${entry.slice(dot)}`;
}

/** Every method that the entry names is named by the list. */
function covers(list: ReadonlySet<string>, entry: string): boolean {
  return list.has(entry) || list.has(entry.slice(entry.lastIndexOf('.') + 1));
}

/** What both filters permit: a bare name and `Class.method` meet in the narrower of the two. */
export function narrowMethods(own: NameFilter, outer: NameFilter): NameFilter {
  const [a, b] = [own.mapNames(spelled), outer.mapNames(spelled)];
  const both = a.within(b);
  if (!a.only || !b.only) return both;
  const [left, right] = [a.only, b.only];
  const met = [
    ...[...left].filter((entry) => covers(right, entry)),
    ...[...right].filter((entry) => covers(left, entry)),
  ];
  return new NameFilter(new Set(met), both.except);
}
