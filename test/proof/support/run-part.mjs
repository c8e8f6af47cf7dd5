// One part of `npm run proof` in a process of its own: what it breaks, leaks or forgets to end stays here.
import { pathToFileURL } from 'node:url';

const [, , path, settings] = process.argv;
const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => stop.abort());
// The command was killed: nobody waits for the result, and nobody else ends what was started here.
process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'));

const send = (message) => new Promise((resolve) => process.send?.(message, resolve));
try {
  const { run } = await import(pathToFileURL(path).href);
  const log = (line) => void process.send?.({ log: String(line) });
  await send({ result: (await run({ ...JSON.parse(settings), log, signal: stop.signal })) ?? null });
} catch (error) {
  console.error(error);
  await send({ error: error instanceof Error ? error.message : String(error) });
}
process.exit(0);
