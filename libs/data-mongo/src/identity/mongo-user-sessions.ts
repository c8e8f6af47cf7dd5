import { randomBytes } from 'node:crypto';
import { isUserId } from '#core';
import { UserSessions } from '#data';
import { SIMPLE_COLLATION } from '../connection/collation.js';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';
import { pointerString } from '../storage/class-storage.js';
import { newObjectId } from '../storage/parse-values.js';

const LIMITS = { maxTimeMS: 5000, comment: 'parley impersonation' };
const READ = { ...LIMITS, ...SIMPLE_COLLATION };
/** Lifetime of a created session: long enough for a call, too short to be stored for later use. */
const MINTED_MS = 60 * 60 * 1000;

/** Reads Parse's own `_Session` rows. Only validated ids enter a query. */
export class MongoUserSessions extends UserSessions {
  constructor(
    private readonly connection: MongoConnection,
    /** For tests. */
    private readonly now: () => Date = () => new Date(),
  ) {
    super();
  }

  newest(userId: string): Promise<string | null> {
    return asStoreOperation(undefined, async () => {
      if (!isUserId(userId)) return null;
      const session = await this.connection.collection('_Session').findOne(
        {
          _p_user: { $eq: pointerString('_User', userId) },
          _session_token: { $type: 'string' },
          $or: [{ expiresAt: { $gt: this.now() } }, { expiresAt: null }],
        },
        { ...READ, sort: { _created_at: -1 }, projection: { _session_token: 1 } },
      );
      const token: unknown = session?.['_session_token'];
      return typeof token === 'string' && token !== '' ? token : null;
    });
  }

  mint(userId: string): Promise<string | null> {
    return asStoreOperation(undefined, async () => {
      if (!isUserId(userId)) return null;
      const users = this.connection.collection('_User');
      if (!(await users.findOne({ _id: { $eq: userId } }, { ...READ, projection: { _id: 1 } }))) return null;
      const at = this.now();
      const token = `r:${randomBytes(16).toString('hex')}`;
      await this.connection.collection('_Session').insertOne(
        {
          _id: newObjectId(),
          _session_token: token,
          _p_user: pointerString('_User', userId),
          createdWith: { action: 'create' },
          restricted: true,
          expiresAt: new Date(at.getTime() + MINTED_MS),
          _created_at: at,
          _updated_at: at,
        },
        LIMITS,
      );
      return token;
    });
  }
}
