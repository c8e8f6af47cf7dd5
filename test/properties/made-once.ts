/** A maker that makes each thing once: arbitraries are large trees, and recursion would build the same ones again and again. */
export function madeOnce<Key extends readonly (string | number)[], Made>(
  make: (...key: Key) => Made,
): (...key: Key) => Made {
  const made = new Map<string, Made>();
  return (...key) => {
    const name = key.join(' ');
    const known = made.get(name);
    if (known !== undefined) return known;
    const fresh = make(...key);
    made.set(name, fresh);
    return fresh;
  };
}
