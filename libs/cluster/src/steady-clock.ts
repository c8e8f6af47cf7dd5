/**
 * Milliseconds since 1970 as this process counts them: right when it started, and never set back or forward afterwards.
 * For times that decide something; what people read may come from the machine's clock.
 */
export const steadyClock = (): number => performance.timeOrigin + performance.now();

/** Milliseconds by which clocks of replicas may differ: what one of them seals or writes down holds on all others so long. */
export const CLOCK_DIFFERENCE = 300_000;
