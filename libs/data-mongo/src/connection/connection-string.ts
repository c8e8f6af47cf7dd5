import { MongoClient, type MongoClientOptions } from 'mongodb';

/** The driver says so in these words; it quotes the string in some of them, and a string may contain a password. */
const UNREADABLE = /unescaped characters|URI malformed|Unable to parse|Invalid connection string/;
/** What stands before the last `@`, which separates the user from the servers. */
const USER = /^mongodb(?:\+srv)?:\/\/(.*)@/s;
const QUERY = /\?(.*)$/s;

const ENCODE =
  'percent-encode the user and the password (% as %25, @ as %40, : as %3A, / as %2F, ? as %3F, # as %23)';
const LAYOUT = 'expected mongodb://USER:PASSWORD@HOST:PORT/NAME?OPTION=VALUE';

const parses = (uri: string): boolean => {
  try {
    new MongoClient(uri);
    return true;
  } catch {
    return false;
  }
};

/** The first option that the driver refuses on its own, by its name. */
function findRefusedOption(uri: string): string | undefined {
  const options = QUERY.exec(uri)?.[1]?.split('&') ?? [];
  const scheme = uri.startsWith('mongodb+srv:') ? 'mongodb+srv://a.example.com' : 'mongodb://a';
  return options.find((option) => !parses(`${scheme}/?${option}`))?.split('=')[0];
}

/** What is wrong with a connection string that the driver refuses, in one line that repeats nothing of it but the name of an option. */
function describeProblem(uri: string, error: unknown): string {
  const message = error instanceof Error ? error.message : '';
  if (uri.trim() !== uri) return 'has a blank or a line break at its beginning or end';
  // Behind a `?` the password may begin what looks like an option.
  if (UNREADABLE.test(message) || /\?.*@/s.test(uri)) return USER.test(uri) ? ENCODE : LAYOUT;
  const option = findRefusedOption(uri);
  if (option === undefined) return QUERY.test(uri) ? `its options do not fit together; ${LAYOUT}` : LAYOUT;
  const isUnknown = message.endsWith(' is not supported');
  return `the option ${option} ${isUnknown ? 'is not one of the driver' : 'has a value that it cannot have'}`;
}

/** A connection string that the driver refuses. The message says in one line what to write, and repeats no value. */
export class ConnectionStringError extends TypeError {
  override readonly name = 'ConnectionStringError';
  constructor(problem: string) {
    super(`not a MongoDB connection string: ${problem}`);
  }
}

/** @throws ConnectionStringError */
export function createClient(uri: string, options: MongoClientOptions): MongoClient {
  try {
    return new MongoClient(uri, options);
  } catch (error) {
    throw new ConnectionStringError(describeProblem(uri, error));
  }
}

/** @throws ConnectionStringError */
export function assertConnectionString(uri: string): void {
  createClient(uri, {});
}
