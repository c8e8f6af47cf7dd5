interface PortUnderTest<Port> {
  readonly port: Port;
  /** Advances the time of the stored entries by milliseconds, without waiting. */
  pass(milliseconds: number): Promise<void> | void;
}

/** Creates an empty port for each test. */
export type MakePort<Port> = () => PortUnderTest<Port> | Promise<PortUnderTest<Port>>;

/** The clock of an in-process adapter, advanced by the test. */
export function handClock() {
  let at = 0;
  return {
    now: () => at,
    pass: (milliseconds: number) => {
      at += milliseconds;
    },
  };
}
