/** Makes a value once for each key; all are forgotten when there are `most` of them. */
export function remember<Value extends object | string | number>(
  most: number,
  make: (key: string) => Value,
): (key: string) => Value {
  const known = new Map<string, Value>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined) {
      value = make(key);
      if (known.size >= most) known.clear();
      known.set(key, value);
    }
    return value;
  };
}
