// `npm run bench -- auth`: what it costs to know who is calling, against nobody asking, in one run.
import { compare } from './load.mjs';
import { AUDIENCE, startIssuer } from './small-issuer.mjs';
import { HEADERS, message, startParley } from './works.mjs';

const TOKENS = 3_000;
const issuer = await startIssuer('RS256');
const service = await startParley({
  auth: [
    { apiKey: 'bench-key', agent: 'bench' },
    { oauth: { issuer: issuer.issuer, audience: AUDIENCE }, agent: 'bench' },
    { anonymous: true, agent: 'bench' },
  ],
});
const body = message('ping', {});
const bearer = (token) => ({ authorization: `Bearer ${token}` });
// More tokens than are remembered, one after the other: each has to be verified again.
const tokens = await Promise.all(Array.from({ length: TOKENS }, (_, at) => issuer.token(`user ${at}`)));
let next = 0;
const everyToken = {
  get authorization() {
    return `Bearer ${tokens[next++ % TOKENS]}`;
  },
};
const candidates = {
  'nobody is asked': {},
  'an API key': HEADERS,
  'a token that was verified before': bearer(tokens[0]),
  'a token that is new (RS256)': everyToken,
};
const measured = await compare(
  Object.values(candidates).map((headers) => ({ ...service, body, headers })),
  { count: TOKENS },
);
for (const [index, name] of Object.keys(candidates).entries()) {
  const { cpu } = measured[index];
  console.log(`${name}: ${cpu.toFixed(0)} µs CPU, ${(cpu / measured[0].cpu).toFixed(2)} of the first`);
}
await service.stop();
issuer.close();
