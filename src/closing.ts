/** Whether this process is on its way out: said by readiness from the first moment, so that nothing new is sent here. */
export class Closing {
  private said = false;

  get begun(): boolean {
    return this.said;
  }

  begin(): void {
    this.said = true;
  }
}

/** Ends the process once what runs has ended; with a second signal at once. */
export function closeOnSignals(close: () => Promise<void>): void {
  let asked = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (asked) process.exit(1);
      asked = true;
      close().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
}
