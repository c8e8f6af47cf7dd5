// Loaded into each measured process: says how much CPU time the process has used, to the microsecond. The counters of /proc
// have steps of ten milliseconds.
'use strict';
if (process.send) {
  process.on('message', (message) => {
    if (message !== 'cpu') return;
    const { user, system } = process.cpuUsage();
    process.send({ cpu: user + system });
  });
  // Listening must not keep the process alive.
  process.channel.unref();
}
