import http from 'node:http';
import { cpuSeconds } from './processes.mjs';

const CONNECTIONS = 16;

function request(agent, url, body, headers) {
  return new Promise((resolve, reject) => {
    const sent = http.request(
      url,
      {
        method: 'POST',
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
        response.on('end', () =>
          resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString() }),
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

/** Sends a fixed number of requests over keep-alive connections; the server's CPU microseconds per request. */
async function cpuPerRequest({ url, pid, body, headers = {} }, count) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  let left = count;
  const before = cpuSeconds(pid);
  const began = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (left-- > 0) {
        const { status } = await request(agent, url, body, headers);
        if (status !== 200) throw new Error(`answered ${status}`);
      }
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
