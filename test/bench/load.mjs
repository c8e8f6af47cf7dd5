import http from 'node:http';

export const CONNECTIONS = 16;

export function request(agent, url, body, headers, method = 'POST') {
  return new Promise((resolve, reject) => {
    const sent = http.request(
      url,
      {
        method,
        agent,
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          ...headers,
        },
      },
      (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.once('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode,
            headers: response.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        );
      },
    );
    sent.once('error', reject);
    sent.end(body);
  });
}

export async function once(url, body, headers = {}) {
  const agent = new http.Agent();
  const answer = await request(agent, url, body, headers);
  agent.destroy();
  return answer;
}

async function postOnce({ url, body, headers = {} }, agent) {
  const { status } = await request(agent, url, body, headers);
  if (status !== 200) throw new Error(`answered ${status}`);
}

/**
 * Does a candidate's work a fixed number of times over keep-alive connections, one request where it names none; the server's CPU
 * microseconds for each.
 */
async function cpuPerRequest(candidate, count) {
  const { cpuSeconds, work = (agent) => postOnce(candidate, agent) } = candidate;
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  let left = count;
  const before = await cpuSeconds();
  const began = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (left-- > 0) await work(agent);
    }),
  );
  const seconds = (performance.now() - began) / 1000;
  const used = (await cpuSeconds()) - before;
  agent.destroy();
  return { cpu: (used / count) * 1e6, perSecond: count / seconds };
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * Interleaves several works, each with its candidates, forth and back, so that noise of the machine falls on all alike.
 * @param works each with its `candidates` and the `count` of requests in a round
 * @param warmUp rounds whose figures are not taken
 * @param seconds after so long half the rounds are enough: a busy machine
 * @returns for each work and candidate the CPU microseconds of a request in every round
 */
export async function interleaved(works, { rounds, warmUp = 1, seconds = Infinity }) {
  const enough = performance.now() + seconds * 1000;
  const turns = works.flatMap(({ candidates, count }, work) =>
    candidates.map((candidate, at) => ({ candidate, count, work, at })),
  );
  for (const { candidate, count } of turns) await cpuPerRequest(candidate, count * warmUp);
  const samples = works.map(({ candidates }) => candidates.map(() => []));
  for (let round = 0; round < rounds; round += 1) {
    if (round >= rounds / 2 && performance.now() > enough) break;
    for (const { candidate, count, work, at } of round % 2 === 0 ? turns : turns.toReversed())
      samples[work][at].push(await cpuPerRequest(candidate, count));
  }
  return samples.map((candidates) => candidates.map((runs) => runs.map(({ cpu }) => cpu)));
}

/**
 * Interleaves the candidates, forth and back, so that noise of the machine falls on all alike.
 * @returns for each candidate the medians over the rounds, and every round
 */
export async function compare(candidates, { count, rounds = 5, warmUp = count }) {
  const samples = candidates.map(() => []);
  for (const candidate of candidates) await cpuPerRequest(candidate, warmUp);
  const forth = [...candidates.entries()];
  const back = forth.toReversed();
  for (let round = 0; round < rounds; round += 1)
    for (const [index, candidate] of round % 2 === 0 ? forth : back)
      samples[index].push(await cpuPerRequest(candidate, count));
  return samples.map((runs) => ({
    cpu: median(runs.map((run) => run.cpu)),
    perSecond: median(runs.map((run) => run.perSecond)),
    rounds: runs.map((run) => run.cpu),
  }));
}

/** The median over the rounds of what the base costs against what the other costs in the same round. */
export const ratioOf = (base, own) => median(base.rounds.map((cpu, round) => cpu / own.rounds[round]));
