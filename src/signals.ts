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
