import { ConfigError } from './config-error.js';

/** Of an address that is not one of this machine. */
const OF_THE_HOST: readonly unknown[] = ['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'];

const findOption = (port: string, code: string | undefined): string =>
  OF_THE_HOST.includes(code) ? port.replace(/port$/, 'host') : port;

/**
 * What an operator does about an address that cannot be listened on.
 * @param port the option of the port; that of the host is beside it
 */
export function adviseListening(port: string, code: string | undefined): string {
  if (OF_THE_HOST.includes(code)) return `give ${findOption(port, code)} an address of this machine`;
  return `give ${port} ${code === 'EACCES' ? 'a port above 1023, or the user the right to this one' : 'another port'}`;
}

/** What a start that cannot listen ends with. @throws errors of anything else */
export function toListeningError(
  option: string,
  { host, port }: { readonly host: string; readonly port: number },
  error: unknown,
): ConfigError {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  const advice =
    code === 'EADDRINUSE' && option === 'server.port'
      ? 'something listens there already, PORT names another'
      : adviseListening(option, code);
  return new ConfigError('address', [
    { path: findOption(option, code), message: `cannot listen on ${host}:${port} (${code}): ${advice}` },
  ]);
}
