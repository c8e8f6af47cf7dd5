/** What keeps a database from being used, and what an operator can do about it. Neither contains a credential. */
export interface ConnectionProblem {
  readonly found: string;
  readonly remedy: string;
}

interface KnownProblem extends ConnectionProblem {
  /** Codes of the server, of Node and of OpenSSL. */
  readonly codes?: readonly (string | number)[];
  /** Where no code says it. */
  readonly text?: RegExp;
}

/** The first that fits is meant. Drivers quote addresses and commands in their texts, which are therefore never repeated. */
const KNOWN_PROBLEMS: readonly KnownProblem[] = [
  {
    text: /requires authentication/,
    found: 'it asks for a login',
    remedy: 'put user and password into database.uri: mongodb://USER:PASSWORD@HOST/NAME?authSource=admin',
  },
  {
    codes: [18, 11],
    text: /authentication failed/i,
    found: 'it refuses the user or the password',
    remedy: 'check user, password (percent-encoded) and authSource of database.uri',
  },
  {
    codes: [334],
    text: /mechanism/i,
    found: 'it does not offer the way of authentication',
    remedy: 'check authMechanism of database.uri, or leave it out',
  },
  {
    codes: [13],
    found: 'the user of database.uri lacks a right',
    remedy: 'grant the user readWrite on the database, or read where nothing is written',
  },
  {
    text: /^connect (?:ENOENT|EACCES)/,
    found: 'nobody listens at its socket, or this user may not use it',
    remedy: 'check the path of the socket in database.uri (percent-encoded), and that the database runs',
  },
  {
    codes: ['ENOENT', 'EACCES', 'EISDIR'],
    found: 'a certificate file cannot be read',
    remedy: 'check tlsCAFile and tlsCertificateKeyFile of database.uri',
  },
  {
    text: /(PEM|DECODER) routines|bad decrypt|key values mismatch/,
    found: 'the file with certificate and key of database.uri cannot be used',
    remedy:
      'check that tlsCertificateKeyFile has a certificate and its key as PEM, and tlsCertificateKeyFilePassword',
  },
  {
    codes: ['ERR_TLS_CERT_ALTNAME_INVALID'],
    found: 'its certificate is for another host name',
    remedy: 'write a host name into database.uri that the certificate has',
  },
  {
    codes: ['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'],
    found: 'its certificate is not valid at this time',
    remedy: 'renew the certificate of the database, and check the clocks',
  },
  {
    codes: [
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'UNABLE_TO_GET_ISSUER_CERT',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'CERT_UNTRUSTED',
    ],
    found: 'its certificate is of an authority that is not trusted',
    remedy: 'name the file of the authority in database.uri: tlsCAFile=FILE',
  },
  {
    codes: ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE'],
    text: /certificate required/i,
    found: 'it asks for a certificate of the client',
    remedy: 'name the file with certificate and key in database.uri: tlsCertificateKeyFile=FILE',
  },
  {
    codes: ['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG', 'EPROTO'],
    text: /wrong version number|before secure TLS connection/i,
    found: 'it does not speak TLS, or not with us',
    remedy: 'check tls of database.uri, and the TLS settings of the database',
  },
  {
    codes: ['ENOTFOUND', 'EAI_AGAIN', 'ENODATA', 'ESERVFAIL', 'EREFUSED'],
    found: 'its host name is not known',
    remedy: 'check the host name in database.uri, and the name service of this machine',
  },
  {
    codes: ['ECONNREFUSED'],
    found: 'nobody listens at its address',
    remedy: 'check host and port of database.uri, and that the database runs',
  },
  {
    codes: ['EHOSTUNREACH', 'ENETUNREACH'],
    found: 'its host cannot be reached',
    remedy: 'check host of database.uri, the network and its firewalls',
  },
  {
    text: /connection .* closed|ECONNRESET|socket hang up|EPIPE/i,
    found: 'it closes our connections',
    remedy: 'check tls of database.uri, and the log of the database for the reason',
  },
  {
    codes: ['ReplicaSetNoPrimary'],
    found: 'its replica set has no primary, or another name',
    remedy: 'check replicaSet of database.uri, and the members of the set (rs.status())',
  },
];

const SILENT: ConnectionProblem = {
  found: 'it does not answer',
  remedy: 'check database.uri, the network, and that it runs',
};

const MAX_CAUSES = 8;

interface Linked {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly cause?: unknown;
  /** Of a server that could not be selected: what is known of the servers. */
  readonly reason?: { readonly type?: unknown; readonly error?: unknown; readonly servers?: unknown };
}

/** The error and those that led to it. */
function listChain(error: unknown, depth = 0): Linked[] {
  if (typeof error !== 'object' || error === null || depth >= MAX_CAUSES) return [];
  const one = error as Linked;
  const servers = one.reason?.servers instanceof Map ? [...one.reason.servers.values()] : [];
  const causes = servers.map((server: { error?: unknown } | null) => server?.error);
  return [one, ...[one.cause, one.reason?.error, ...causes].flatMap((each) => listChain(each, depth + 1))];
}

/** Codes and names of errors of a database that gave no reason. */
const WITHOUT_ANSWER: ReadonlySet<unknown> = new Set([
  'unavailable',
  'timeout',
  'cancelled',
  'MongoServerSelectionError',
  'MongoNetworkTimeoutError',
  // Of operations beside the one that could not connect.
  'MongoTopologyClosedError',
]);

/** What an operator can do about an error of the database; null: it is not about the connection. */
export function connectionProblem(error: unknown): ConnectionProblem | null {
  const chain = listChain(error);
  const codes = new Set(chain.flatMap(({ code, reason }) => [code, reason?.type]));
  const texts = chain.map(({ message }) => (typeof message === 'string' ? message : ''));
  const known = KNOWN_PROBLEMS.find(
    (one) =>
      one.codes?.some((code) => codes.has(code)) === true ||
      (one.text !== undefined && texts.some((text) => one.text?.test(text) === true)),
  );
  if (known) return { found: known.found, remedy: known.remedy };
  return chain.some(({ code, name }) => WITHOUT_ANSWER.has(code) || WITHOUT_ANSWER.has(name)) ? SILENT : null;
}
