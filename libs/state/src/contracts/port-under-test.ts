/** A port on trial. */
interface PortUnderTest<Port> {
  readonly port: Port;
  /** Lets time pass for what the port keeps, in milliseconds, without waiting for it. */
  pass(milliseconds: number): Promise<void> | void;
}

/** Makes an empty one for each test. */
export type MakePort<Port> = () => PortUnderTest<Port> | Promise<PortUnderTest<Port>>;

/** The clock of a process adapter, moved by hand. */
export function handClock() {
  let at = 0;
  return {
    now: () => at,
    pass: (milliseconds: number) => {
      at += milliseconds;
    },
  };
}
