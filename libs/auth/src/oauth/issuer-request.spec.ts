import { expect, it } from 'vitest';
import { startCountingServer } from '../../../audit/src/delivery/deliveries.fixture.js';
import { requestJson } from './issuer-request.js';

const server = startCountingServer('{"keys":[]}');

it('does not ask this machine, or its link, under the name of an issuer', async () => {
  for (const address of ['127.0.0.1', '::1', '169.254.169.254']) {
    const asked = requestJson(`https://issuer.example:${server.port}/keys`, {
      resolve: () => Promise.resolve([address]),
    });
    await expect(asked).rejects.toThrow('EADDRFORBIDDEN');
  }
  expect(server.requests).toBe(0);
  expect(await requestJson(`http://localhost:${server.port}/keys`)).toEqual({
    status: 200,
    value: { keys: [] },
  });
});
