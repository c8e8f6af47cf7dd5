// `tools/list` against bare handlers that answer with the very same bytes.
import { join } from 'node:path';
import { compare, once } from './load.mjs';
import { folderWith, root, start } from './processes.mjs';
import { LIST } from './works.mjs';

const TARGET = 0.8;

/** What the service answers, its envelope left out. */
export async function listed(service, headers) {
  const { text } = await once(service.url, LIST, headers);
  return JSON.parse(text).result;
}

/** @returns the rows of the table: one for a bare handler that serialises, one for one that has the bytes ready */
export async function listingRows(service, headers, what = 'tools/list', count = 3000) {
  const { text } = await once(service.url, LIST, headers);
  const file = join(folderWith({ 'bytes.json': text }), 'bytes.json');
  const bare = (serialize) =>
    start([join(root, 'test/bench/bare-server.mjs')], {
      env: { BENCH_BYTES: file, BENCH_SERIALIZE: serialize ? '1' : '' },
      ready: /on (\S+)/,
    });
  const [prepared, serializing] = [await bare(false), await bare(true)];
  const [own, ready, made] = await compare(
    [
      { ...service, body: LIST, headers },
      { ...prepared, body: LIST },
      { ...serializing, body: LIST },
    ],
    { count },
  );
  await prepared.stop();
  await serializing.stop();
  return [
    ['that serialises them', made],
    ['that has them ready', ready],
  ].map(([which, base]) => {
    const ratio = base.cpu / own.cpu;
    return {
      work: `${what} against a bare handler of the same bytes ${which}`,
      value: `${ratio.toFixed(2)} (${own.cpu.toFixed(0)} / ${base.cpu.toFixed(0)} µs CPU)`,
      target: `≥ ${TARGET}`,
      met: ratio >= TARGET,
    };
  });
}
