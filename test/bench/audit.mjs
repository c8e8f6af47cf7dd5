// `npm run bench -- audit`: what recording a call costs: server CPU per request with and without sinks, in one run.
import { compare, printRows } from './load.mjs';
import { HEADERS, startDatabase, startParley, WORKS } from './works.mjs';

const database = await startDatabase();
const file = { kind: 'file', path: './records.jsonl' };
const WAYS = {
  'no sink': [],
  'file, buffer': [{ ...file, onFailure: 'buffer' }],
  'file, refuse, fsync interval': [file],
  'file, refuse, fsync always': [{ ...file, fsync: 'always' }],
  'mongodb, refuse': [{ kind: 'mongodb' }],
};

const services = [];
for (const sinks of Object.values(WAYS))
  services.push(await startParley({ uri: database.url, audit: { sinks } }));
const measured = await compare(
  services.map((service) => ({ ...service, body: WORKS[0].own, headers: HEADERS })),
  { count: 1000 },
);
const [without] = measured;
printRows(
  Object.keys(WAYS).map((name, at) => {
    const { cpu } = measured[at];
    return [name, (cpu / without.cpu).toFixed(2), `${cpu.toFixed(0)} µs CPU`];
  }),
);
await Promise.all([...services, database].map((one) => one.stop()));
