import { describe, expect, it } from 'vitest';
import { changesErrors } from '../checks/changes-checks.js';
import { readDefaults } from '../schema/class-schema.js';
import { ChangesSection } from './background.js';
import { ServerSection } from './server.js';
import { DatabaseSection, ParseSection } from './stores.js';

const STATE_KEY = 'k'.repeat(32);

interface Given {
  readonly writes?: 'direct' | 'proposed';
  readonly record?: ChangesSection['record'];
  readonly stateKey?: string | null;
  readonly uri?: string | null;
  readonly serverUrl?: string | null;
}

const errorsOf = ({
  writes = 'direct',
  record = 'proposed',
  stateKey = null,
  uri = 'embedded',
  serverUrl,
}: Given) =>
  changesErrors({
    agents: { reader: {}, support: { writes } },
    changes: { ...readDefaults(ChangesSection), record },
    server: { ...readDefaults(ServerSection), stateKey },
    database: { ...readDefaults(DatabaseSection), name: 'parley', uri },
    parse: { ...readDefaults(ParseSection), ...(serverUrl && { serverUrl }) },
  }).map(({ path }) => path);

describe('the configuration of change sets', () => {
  it.each<[Given]>([
    [{}],
    [{ record: 'none' }],
    [{ writes: 'proposed', stateKey: STATE_KEY }],
    [{ record: 'all', stateKey: STATE_KEY }],
    [{ uri: null, serverUrl: 'http://127.0.0.1:1337/parse' }],
  ])('is good: %j', (given) => {
    expect(errorsOf(given)).toEqual([]);
  });

  it.each<[Given, string]>([
    [{ writes: 'proposed' }, 'server.stateKey'],
    [{ record: 'all' }, 'server.stateKey'],
    [{ writes: 'proposed', stateKey: STATE_KEY, uri: null }, 'database.uri'],
    [
      { writes: 'proposed', stateKey: STATE_KEY, serverUrl: 'http://127.0.0.1:1337/parse' },
      'agents.support.writes',
    ],
    [{ record: 'all', stateKey: STATE_KEY, serverUrl: 'http://127.0.0.1:1337/parse' }, 'changes.record'],
  ])('is refused: %j', (given, path) => {
    expect(errorsOf(given)).toContain(path);
  });
});
