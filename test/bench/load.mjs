import http from 'node:http';
import { cpuSeconds } from './processes.mjs';

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
  const { pid, work = (agent) => postOnce(candidate, agent) } = candidate;
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  let left = count;
  const before = cpuSeconds(pid);
  const began = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (left-- > 0) await work(agent);
    }),
  );
  agent.destroy();
  return {
    cpu: ((cpuSeconds(pid) - before) / count) * 1e6,
    perSecond: count / ((performance.now() - began) / 1000),
  };
}

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** Interleaves the candidates, so that noise of the machine falls on all alike; medians over the rounds. */
export async function compare(candidates, { count, rounds = 5 }) {
  const samples = candidates.map(() => []);
  for (const candidate of candidates) await cpuPerRequest(candidate, count);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, candidate] of candidates.entries())
      samples[index].push(await cpuPerRequest(candidate, count));
  }
  return samples.map((runs) => ({
    cpu: median(runs.map((run) => run.cpu)),
    perSecond: median(runs.map((run) => run.perSecond)),
  }));
}
