import type { DataMeter } from '#agent';

/** One meter that tells both; undefined when there is neither. */
export function meters(
  one: DataMeter | null | undefined,
  other: DataMeter | null | undefined,
): DataMeter | undefined {
  if (!one || !other) return one ?? other ?? undefined;
  return {
    begins: (operation) => {
      const [endsOne, endsOther] = [one.begins(operation), other.begins(operation)];
      return (rows, fault) => {
        endsOne(rows, fault);
        endsOther(rows, fault);
      };
    },
  };
}
