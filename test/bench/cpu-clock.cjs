// Loaded into each measured process: says how much CPU time the process has used, to the microsecond (the counters of /proc
// have steps of ten milliseconds), and how much memory is left after a collection of garbage.
'use strict';
// Processes that a measured one starts obey that one alone.
if (process.send && !process.env.NODE_UNIQUE_ID) {
  process.on('message', (message) => {
    if (message === 'memory') {
      globalThis.gc?.();
      process.send(process.memoryUsage());
      return;
    }
    if (message !== 'cpu') return;
    const { user, system } = process.cpuUsage();
    process.send({ cpu: user + system });
  });
  // Listening must not keep the process alive.
  process.channel.unref();
}
