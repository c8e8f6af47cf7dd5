import { ServiceClient, type ServiceOptions } from './service-client.js';
import { jsonText, textLines } from './text-output.js';

/** Whether a service is ready, and with an operator's key its status. Exit code 1 while it is not ready. */
export async function runStatus(options: ServiceOptions): Promise<void> {
  const service = new ServiceClient(options);
  const ready = await service.ask('/ready');
  const status = service.hasKey ? await service.call('/console/api/status') : null;
  const report = { ready: ready.status === 200, ...ready.body, ...(status && { service: status }) };
  if (ready.status !== 200) process.exitCode = 1;
  process.stdout.write(options.json ? jsonText(report) : describeReport(report));
}

/** One line for each value, with the path that leads to it. */
function describeReport(report: object): string {
  const list = (value: unknown, path: string): string[] =>
    value !== null && typeof value === 'object' && Object.keys(value).length > 0
      ? Object.entries(value).flatMap(([name, member]) =>
          list(member, path === '' ? name : `${path}.${name}`),
        )
      : [`${path}: ${typeof value === 'string' ? value : JSON.stringify(value)}`];
  return textLines(list(report, ''));
}
