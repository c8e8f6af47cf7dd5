import { POSTS_POLICY, POSTS_SEED } from '../fixtures/posts.fixture.js';
import { type DatabaseView, viewDatabase } from './database-dump.js';
import { type Database, type Service, startDatabase, startService, WRITES_OPEN } from './service.js';

export interface PostsService {
  readonly service: Service;
  readonly database: Database;
  readonly view: DatabaseView;
}

/**
 * A service over the posts, on a server that a test looks at itself. Each agent has a key, `key-of-NAME`.
 * @param config the rest of its configuration, or what takes the place of a default
 * @param env Default: the gates of writes are open
 */
export async function servePosts(
  agents: Readonly<Record<string, object>>,
  config: object = {},
  env: Record<string, string> = WRITES_OPEN,
): Promise<PostsService> {
  const database = await startDatabase(POSTS_SEED);
  const service = await startService({
    config: {
      server: { stateKey: 'a key of thirty-two characters, or more' },
      agents,
      auth: Object.keys(agents).map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: POSTS_POLICY,
      database: { uri: database.uri, name: 'parley' },
      ...config,
    },
    env,
  });
  return { database, service, view: viewDatabase(database.uri) };
}
