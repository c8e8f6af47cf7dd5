// `node tools/call-path.mjs [TOOL]`: which of our source files one call runs through, by precise call coverage of the running service.
// The figure is the length of the way that a maintainer walks from the socket to the database and back (docs/contributing/architecture.md).
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { start } from '../test/bench/processes.mjs';

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
  const service = await start(['--import', fileURLToPath(import.meta.url), 'dist/src/main.js'], {
    env: { PORT: '0', [INSIDE]: '1' },
    ready: /Parley listening on (\S+)/,
  });
  const call = () =>
    fetch(service.url, {
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
  await service.ask('start');
  const answer = await call();
  if (/"isError":true/.test(answer)) throw new Error(answer);
  const { files } = await service.ask('count');
  for (const { file, functions } of files) console.log(`${join(file)}  ${functions.join(' ')}`);
  const libs = new Set(files.map(({ file }) => file.split('/').slice(0, 2).join('/')));
  const functions = files.reduce((sum, each) => sum + each.functions.length, 0);
  console.log(`${tool}: ${files.length} files, ${functions} functions, ${libs.size} libs`);
  await service.stop();
}
