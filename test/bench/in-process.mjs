// `node test/bench/in-process.mjs [CALLS]`: CPU of one call of the dispatcher alone, without HTTP and with the store stubbed.
// A handler written by hand runs beside it in the same rounds: it finds the same rows and prints the same answer.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundleModules } from '../../tools/build/bundle.mjs';
import { median, once } from './load.mjs';
import { folderWith, root } from './processes.mjs';
import { configuration, HEADERS, message, startDatabase } from './works.mjs';

const QUERY = {
  name: 'query_class',
  arguments: { class_name: 'Listing', where: { format: 'vinyl' }, limit: 10 },
};
const UNKNOWN = { name: 'nothing', arguments: {} };
const ROUNDS = 7;

/** What is measured as the service runs it, out of a bundle: the build changes modules while it joins them. */
async function bundled() {
  const entry = join(root, 'dist/measured.js');
  const parts = {
    Kernel: 'libs/dispatcher/src/kernel.js',
    McpRequest: 'libs/core/src/mcp-request.js',
    MongoRecordReader: 'libs/data-mongo/src/read/mongo-record-reader.js',
    serve: 'src/serve.js',
  };
  const lines = Object.entries(parts).map(([name, path]) => `export { ${name} } from './${path}';\n`);
  writeFileSync(entry, lines.join(''));
  // As deep as dist/bundle, where modules look for what lies beside them.
  const folder = join(root, 'dist/measured');
  await bundleModules({ measured: entry }, folder);
  return import(pathToFileURL(join(folder, 'measured.js')).href);
}

/** Microseconds of CPU per call, of several works in interleaved rounds; the first round warms up. */
async function measured(works, calls) {
  const samples = works.map(() => []);
  for (let round = 0; round <= ROUNDS; round += 1)
    for (const [index, { run }] of works.entries()) {
      const before = process.cpuUsage();
      for (let made = 0; made < calls; made += 1) await run();
      const { user, system } = process.cpuUsage(before);
      if (round > 0) samples[index].push((user + system) / calls);
    }
  return works.map(({ work, target, isBase = false }, index) => ({
    work,
    target,
    isBase,
    microseconds: median(samples[index]),
  }));
}

/** @returns rows of `{ work, microseconds, ratio, target }`; `ratio` is of the handler written by hand to the work */
export async function inProcess(calls = 5_000) {
  const { Kernel, McpRequest, MongoRecordReader, serve } = await bundled();
  const database = await startDatabase();
  const dispatch = Kernel.prototype.dispatch;
  const { findShown } = MongoRecordReader.prototype;
  let captured;
  const answers = [];
  Kernel.prototype.dispatch = function (method, params, request) {
    captured = { kernel: this, request };
    return dispatch.call(this, method, params, request);
  };
  MongoRecordReader.prototype.findShown = async function (...args) {
    const answer = await findShown.apply(this, args);
    answers.push(answer);
    return answer;
  };
  const logging = { level: process.env.LOG_LEVEL ?? 'info' };
  const service = await serve(
    { PATH: process.env.PATH },
    folderWith({ 'parley.yaml': configuration({ uri: database.url, logging }) }),
  );
  try {
    await once(service.url, message('tools/call', QUERY), HEADERS);
    Kernel.prototype.dispatch = dispatch;
    const [{ rows }] = answers;
    const stored = () => rows.map((row) => ({ ...row }));
    MongoRecordReader.prototype.findShown = () => Promise.resolve({ count: rows.length, rows: stored() });
    const { kernel } = captured;
    const { agent, transport } = captured.request;
    const { era, version, clientCapabilities } = transport;
    const createRequest = (revision = version) =>
      new McpRequest(agent, {
        era,
        version: revision,
        clientCapabilities,
        /** @type {AbortController | undefined} */
        aborts: undefined,
        aborted: false,
        // As at the edge: created when it is first read, and not to wait for the end of the request.
        get signal() {
          this.aborts ??= new AbortController();
          return this.aborts.signal;
        },
        onAbort: () => () => undefined,
        requestId: 1,
      });
    const byHand = async ({ arguments: { class_name, limit } }) => {
      const found = await Promise.resolve(stored());
      const data = { class_name, result_count: found.length, pagination: { limit, skip: 0 }, results: found };
      return { content: [{ type: 'text', text: JSON.stringify(data) }], isError: false };
    };
    const works = [
      { work: 'a handler written by hand, stubbed rows', isBase: true, run: () => byHand(QUERY) },
      { work: 'ping', run: () => kernel.dispatch('ping', {}, createRequest()) },
      {
        work: 'unknown tool',
        target: 15,
        run: () => kernel.dispatch('tools/call', UNKNOWN, createRequest()),
      },
      {
        work: 'unknown tool, 2025-11-25',
        target: 15,
        run: () => kernel.dispatch('tools/call', UNKNOWN, createRequest('2025-11-25')),
      },
      {
        work: 'query_class, governed, 10 stubbed rows',
        target: 80,
        run: () => kernel.dispatch('tools/call', QUERY, createRequest()),
      },
    ].filter(({ work, isBase }) => isBase || work.startsWith(process.env.ONLY ?? ''));
    const found = await measured(works, calls);
    const base = found.find(({ isBase }) => isBase).microseconds;
    return found.map(({ work, microseconds, target }) => ({
      work,
      microseconds,
      ratio: base / microseconds,
      target,
    }));
  } finally {
    MongoRecordReader.prototype.findShown = findShown;
    await service.close();
    await database.stop();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { work, microseconds, ratio, target } of await inProcess(Number(process.argv[2] ?? 5_000)))
    console.log(
      `${work.padEnd(44)} ${microseconds.toFixed(1).padStart(8)} µs  ${ratio.toFixed(2).padStart(6)} of by hand` +
        (target === undefined ? '' : `  ≤ ${target} µs ${microseconds <= target ? 'yes' : 'NO'}`),
    );
  process.exit(0);
}
