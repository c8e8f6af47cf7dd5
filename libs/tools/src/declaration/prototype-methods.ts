/** Method names of a prototype and of what it inherits, the nearest first. A getter is never run. */
export function* methodsOf(prototype: object): Generator<[string, object]> {
  const seen = new Set<string>();
  for (let level = prototype; level && level !== Object.prototype; level = Object.getPrototypeOf(level)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(level))) {
      if (seen.has(name)) continue;
      seen.add(name);
      if (typeof value === 'function' && name !== 'constructor') yield [name, value as object];
    }
  }
}
