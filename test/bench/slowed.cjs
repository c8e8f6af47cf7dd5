// Loaded into the service by `npm run bench -- --quick --slowed 0.3`: every request costs that share more CPU, so that one can
// see whether the comparison notices.
'use strict';
const http = require('node:http');
const share = Number(process.env.BENCH_SLOWED);
const used = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};
let last = used();
const emit = http.Server.prototype.emit;
http.Server.prototype.emit = function slowed(event, ...args) {
  if (event === 'request')
    args[1].once('finish', () => {
      const until = used() + (used() - last) * share;
      while (used() < until);
      last = used();
    });
  return emit.call(this, event, ...args);
};
