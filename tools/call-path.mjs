// `node tools/call-path.mjs [TOOL]`: which of our source files one call runs through, by precise call coverage of the running service.
// The figure is the length of the way that a maintainer walks from the socket to the database and back (docs/contributing/architecture.md).
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { freePort } from './free-port.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const INSIDE = 'PARLEY_CALL_PATH';

if (process.env[INSIDE]) await insideTheService();
else await besideIt(process.argv[2] ?? 'query_class');

/** Preloaded by the service: a message starts the counting, the next one answers with what was called. */
async function insideTheService() {
  const { Session } = await import('node:inspector/promises');
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  const count = async (message) => {
    if (message === 'start') {
      await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
      await session.post('Profiler.takePreciseCoverage');
      process.send?.({ started: true });
      return;
    }
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const files = result
      .filter(({ url }) => /\/dist\/(src|libs)\//.test(url))
      .map(({ url, functions }) => ({
        file: url.replace(/^.*\/dist\//, ''),
        functions: functions
          .filter(({ functionName, ranges }) => functionName !== '' && ranges[0].count > 0)
          .map(({ functionName }) => functionName),
      }))
      .filter(({ functions }) => functions.length > 0);
    process.send?.({ files });
  };
  process.on('message', (message) => void count(message));
}

async function besideIt(tool) {
  const port = await freePort();
  const service = spawn(process.execPath, ['--import', fileURLToPath(import.meta.url), 'dist/src/main.js'], {
    cwd: root,
    env: { ...process.env, PORT: String(port), [INSIDE]: '1' },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const answered = () => new Promise((resolve) => service.once('message', resolve));
  try {
    const url = `http://127.0.0.1:${port}`;
    while (
      !(await fetch(`${url}/ready`).then(
        ({ ok }) => ok,
        () => false,
      ))
    )
      await new Promise((resolve) => setTimeout(resolve, 100));
    const call = () =>
      fetch(`${url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: {
            name: tool,
            arguments:
              tool === 'query_class'
                ? { class_name: 'Album', where: { genre: 'jazz' }, order: '-released', limit: 3 }
                : {},
          },
        }),
      }).then((response) => response.text());
    // What only the first calls run belongs to the start.
    for (let count = 0; count < 3; count += 1) await call();
    const started = answered();
    service.send('start');
    await started;
    const answer = await call();
    if (/"isError":true/.test(answer)) throw new Error(answer);
    const counted = answered();
    service.send('count');
    const { files } = await counted;
    for (const { file, functions } of files) console.log(`${join(file)}  ${functions.join(' ')}`);
    const libs = new Set(files.map(({ file }) => file.split('/').slice(0, 2).join('/')));
    const functions = files.reduce((sum, each) => sum + each.functions.length, 0);
    console.log(`${tool}: ${files.length} files, ${functions} functions, ${libs.size} libs`);
  } finally {
    service.kill();
  }
}
