// Many listening streams from one process of their own: `listeners.mjs URL COUNT`. Upon `await` on stdin, it says when
// each stream was notified of a changed list; upon `close`, it ends.
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

const [target, count] = process.argv.slice(2);
const { hostname, port, pathname } = new URL(target);
const now = () => performance.timeOrigin + performance.now();
const sockets = [];
let heard = [];

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } },
});

/** @returns its id */
async function openSession() {
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const answer = await fetch(target, { method: 'POST', headers, body: INITIALIZE });
  const session = answer.headers.get('mcp-session-id');
  const text = await answer.text();
  if (session === null) throw new Error(`no session: ${text}`);
  return session;
}

async function open() {
  const session = await openSession();
  return new Promise((/** @type {(value?: undefined) => void} */ resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    sockets.push(socket);
    socket.setEncoding('utf8').once('error', reject);
    let head = '';
    let open = false;
    socket.on('data', (text) => {
      if (!open) {
        head += text;
        if (!head.startsWith('HTTP/1.1 200')) reject(new Error(head));
        open = head.includes(': connected');
        if (open) resolve();
      }
      if (text.includes('tools/list_changed')) heard.push(now());
    });
    socket.write(
      `GET ${pathname} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n` +
        `Mcp-Session-Id: ${session}\r\n\r\n`,
    );
  });
}

for (let from = 0; from < Number(count); from += 100) {
  const some = Array.from({ length: Math.min(100, Number(count) - from) }, () => open());
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
