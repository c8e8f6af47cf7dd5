import http from 'node:http';

/** Fewer than one caller's share of the service's database queue (10): what is measured is work, not waiting. */
export const CONNECTIONS = 8;

/** Requests after which a process that was idle, or new, costs what it costs: V8 compiles what runs often, and collects code of an idle process. */
const WARM = 5000;

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
 * Measures works one after the other. All candidates of a work are warmed, then take turns, forth and back: none is idle for long,
 * and noise of the machine falls on all alike.
 * @param works each with its `candidates` and the `count` of requests in a round
 * @param warmUp requests to each candidate before its work is measured
 * @param seconds for each work; after so long half the rounds are enough: a busy machine
 * @returns for each work and candidate the CPU microseconds of a request in every round
 */
export async function interleaved(works, { rounds, warmUp = WARM, seconds = Infinity }) {
  const figures = [];
  for (const { candidates, count, warmUp: own = warmUp } of works) {
    for (const candidate of candidates) await cpuPerRequest(candidate, own);
    const enough = performance.now() + seconds * 1000;
    const samples = candidates.map(() => []);
    const forth = [...candidates.entries()];
    for (let round = 0; round < rounds; round += 1) {
      if (round >= rounds / 2 && performance.now() > enough) break;
      for (const [at, candidate] of round % 2 === 0 ? forth : forth.toReversed())
        samples[at].push((await cpuPerRequest(candidate, count)).cpu);
    }
    figures.push(samples);
  }
  return figures;
}

/**
 * Interleaves the candidates, forth and back, so that noise of the machine falls on all alike.
 * @returns for each candidate the medians over the rounds, and every round
 */
export async function compare(candidates, { count, rounds = 5, warmUp = Math.max(count, WARM) }) {
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

/** @param {string[][]} rows printed in columns, each as wide as its widest cell */
export function printRows(rows) {
  const widths = rows[0].map((_, at) => Math.max(...rows.map((row) => row[at].length)));
  for (const row of rows)
    console.log(
      row
        .map((cell, at) => cell.padEnd(widths[at]))
        .join('  ')
        .trimEnd(),
    );
}
