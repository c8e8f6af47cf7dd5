// Imports the module and tells what that did to the process besides.
const listeners = () => process.eventNames().map((name) => `${String(name)} ${process.listenerCount(name)}`);
const state = () => ({ resources: process.getActiveResourcesInfo(), listeners: listeners().sort() });

const read = new Set();
const { env } = process;
Object.defineProperty(process, 'env', {
  value: new Proxy(env, {
    get: (target, name) => (typeof name === 'string' && read.add(name), Reflect.get(target, name)),
    has: (target, name) => (typeof name === 'string' && read.add(name), Reflect.has(target, name)),
    ownKeys: (target) => (read.add('every name'), Reflect.ownKeys(target)),
  }),
});
const before = state();
const imported = await import('@parley/server');
await new Promise((resolve) => setImmediate(resolve));
process.stdout.write(
  JSON.stringify({ before, after: state(), read: [...read], exported: Object.keys(imported) }),
);
