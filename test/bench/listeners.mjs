// Many listening streams from one process of their own: `listeners.mjs URL COUNT`. Upon `await` on stdin, it says when
// each stream was notified of a changed list; upon `close`, it ends.
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

const [target, count] = process.argv.slice(2);
const { hostname, port, pathname } = new URL(target);
const now = () => performance.timeOrigin + performance.now();
const sockets = [];
let heard = [];

function open(number) {
  return new Promise((/** @type {(value?: undefined) => void} */ resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    sockets.push(socket);
    socket.setEncoding('utf8').once('error', reject);
    let open = false;
    socket.on('data', (text) => {
      if (!open && text.includes(': connected')) {
        open = true;
        resolve();
      }
      if (text.includes('tools/list_changed')) heard.push(now());
    });
    socket.write(
      `GET ${pathname} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n` +
        `Mcp-Session-Id: bench-${process.pid}-${number}\r\n\r\n`,
    );
  });
}

for (let from = 0; from < Number(count); from += 100) {
  const some = Array.from({ length: Math.min(100, Number(count) - from) }, (_, at) => open(from + at));
  await Promise.all(some);
}
console.log(`open ${count}`);

for await (const order of createInterface({ input: process.stdin })) {
  if (order === 'close') {
    for (const socket of sockets) socket.destroy();
    console.log('closed');
  } else {
    while (heard.length < Number(count)) await new Promise((resolve) => setTimeout(resolve, 5));
    const times = heard.sort((one, other) => one - other);
    heard = [];
    console.log(
      `heard ${JSON.stringify({ p99: times[Math.floor(times.length * 0.99)], last: times.at(-1) })}`,
    );
  }
}
