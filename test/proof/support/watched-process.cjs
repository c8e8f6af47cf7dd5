// Loaded into a service whose state over time is sampled: reports memory, what keeps its event loop busy, and how late that loop runs.
'use strict';
const { monitorEventLoopDelay } = require('node:perf_hooks');

// Processes that a watched one starts are not watched.
if (process.send && !process.env.NODE_UNIQUE_ID) {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  process.on('message', (message) => {
    if (message !== 'state') return;
    const milliseconds = delay.percentile(99) / 1e6;
    const resident = process.memoryUsage.rss() / 2 ** 20;
    const resources = process.getActiveResourcesInfo();
    const timers = resources.filter((name) => name === 'Timeout').length;
    // Without what is only waiting to be collected. The pause is not part of the delay of the service.
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    process.send({
      resident,
      heap: heapUsed / 2 ** 20,
      external: external / 2 ** 20,
      handles: resources.length - timers,
      timers,
      delay: milliseconds,
    });
    delay.reset();
  });
  process.channel.unref();
}
