// Boots a real Parse Server with LiveQuery against MONGODB_URI on a free loopback port, prints one JSON line with
// its address and keys when it is ready, and stops on SIGTERM or when its parent closes stdin.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { listen } from '../../tools/free-port.mjs';

const databaseURI = process.env.MONGODB_URI;
if (!databaseURI) {
  console.error('MONGODB_URI is missing');
  process.exit(2);
}
// Read while Parse Server loads; without it a folder `logs` appears wherever the tests run.
process.env.PARSE_SERVER_LOGS_FOLDER = 'null';
// stdout carries the one line; whatever a dependency prints goes to stderr.
const announce = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);

const require = createRequire(import.meta.url);
const started = Date.now();
const { ParseServer } = require('parse-server');
const express = require('express');

const appId = 'oracle';
const masterKey = 'oracle-master';
const restAPIKey = 'oracle-rest';

const {
  liveQueryClasses = [],
  liveQueryKeyPairs = {},
  port = 0,
  ...extra
} = JSON.parse(process.env.PARSE_OPTIONS ?? '{}');

const app = express();
const http = createServer(app);
// An idle connection is the client's to close: on a busy machine the default of five seconds ends one in the very
// moment in which a test sends on it.
http.keepAliveTimeout = 0;
const origin = `127.0.0.1:${await listen(http, port)}`;
const url = `http://${origin}/parse`;

const parse = new ParseServer({
  databaseURI,
  appId,
  masterKey,
  restAPIKey,
  masterKeyIps: ['127.0.0.1', '::1'],
  serverURL: url,
  allowClientClassCreation: true,
  enforcePrivateUsers: false,
  liveQuery: { classNames: liveQueryClasses },
  silent: true,
  logsFolder: null,
  ...extra,
});
await parse.start();
app.use('/parse', parse.app);
await ParseServer.createLiveQueryServer(http, {
  appId,
  masterKey,
  serverURL: url,
  keyPairs: liveQueryKeyPairs,
});

const stop = async () => {
  http.close();
  http.closeAllConnections();
  await parse.handleShutdown();
  process.exit(0);
};
process.on('SIGTERM', () => void stop());
process.stdin.on('end', () => void stop()).resume();
announce(
  `${JSON.stringify({ url, liveQueryUrl: `ws://${origin}`, appId, masterKey, restAPIKey, bootMs: Date.now() - started })}\n`,
);
