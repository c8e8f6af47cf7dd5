// The command line from its compiled modules, run many times by one process: what is loaded for the first command serves the others. Its
// entry is evaluated each time, as at a start. (The bundle would be evaluated whole each time, and kept.)
const entry = new URL('../../dist/src/cli/main.js', import.meta.url);
const [node] = process.argv;
let count = 0;

process.on('message', ({ args, env, cwd, end }) => {
  void run(args, env, cwd).then((code) => {
    for (const stream of [process.stdout, process.stderr]) stream.write(`${end}${code}\n`);
  });
});
process.on('disconnect', () => process.exit());

async function run(args, env, cwd) {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(cwd);
  process.argv = [node, entry.pathname, ...args];
  process.exitCode = undefined;
  const listening = process.stdout.listeners('error');
  try {
    await import(`${entry.href}?${(count += 1)}`);
  } catch (error) {
    // What a process ends with that nobody catches.
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exitCode = 1;
  }
  process.removeAllListeners('SIGINT');
  for (const listener of process.stdout.listeners('error'))
    if (!listening.includes(listener)) process.stdout.off('error', /** @type {() => void} */ (listener));
  const code = process.exitCode ?? 0;
  process.exitCode = undefined;
  return code;
}
