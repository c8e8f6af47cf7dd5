// Loaded into each measured process: says how much CPU time the process has used, to the microsecond. The counters of /proc
// have steps of ten milliseconds.
'use strict';
// Processes that a measured one starts obey that one alone.
if (process.send && !process.env.NODE_UNIQUE_ID) {
  process.on('message', (message) => {
    if (message !== 'cpu') return;
    const { user, system } = process.cpuUsage();
    process.send({ cpu: user + system });
  });
  // Listening must not keep the process alive.
  process.channel.unref();
}
