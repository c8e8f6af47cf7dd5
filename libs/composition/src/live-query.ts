import { LiveQuerySource } from '#data-parse';
import type { LiveQueryConfig } from '#config';

/** Changes as Parse Server tells them, where it was named. It connects when there is something to watch. */
export function liveQuerySource(
  { url, appId, restApiKey, masterKey }: LiveQueryConfig,
  log: { warn(line: string): void },
): LiveQuerySource | null {
  if (url === null || appId === null) return null;
  return new LiveQuerySource({ url, applicationId: appId, restApiKey, masterKey }, log);
}
