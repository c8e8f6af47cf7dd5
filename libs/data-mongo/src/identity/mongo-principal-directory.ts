import type { Document } from 'mongodb';
import { isUserId } from '#core';
import { MAX_ROLE_DEPTH, PrincipalDirectory, type SessionOwner, type UserField } from '#data';
import { SIMPLE_COLLATION } from '../connection/collation.js';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';
import { parsePointerString } from '../storage/class-storage.js';
import { joinCollection } from '../storage/parse-storage.js';

const LIMITS = { maxTimeMS: 5000, comment: 'parley principals', ...SIMPLE_COLLATION };

const MEMBERS = joinCollection('_Role', 'users');
const CHILDREN = joinCollection('_Role', 'roles');

/** For each role that is `held`, the pairs of child and parent above it. */
const UPWARDS: readonly Document[] = [
  {
    $graphLookup: {
      from: CHILDREN,
      startWith: '$held',
      connectFromField: 'owningId',
      connectToField: 'relatedId',
      as: 'above',
      maxDepth: MAX_ROLE_DEPTH - 1,
    },
  },
  { $project: { _id: 0, held: 1, 'above.relatedId': 1, 'above.owningId': 1 } },
];

/**
 * Reads sessions, users and roles from Parse's own collections. Only constants, validated ids and values under `$eq` or `$in`
 * enter a query; each query ends after five seconds.
 */
export class MongoPrincipalDirectory extends PrincipalDirectory {
  constructor(private readonly connection: MongoConnection) {
    super();
  }

  ownerOfSession(token: string): Promise<SessionOwner | null> {
    return asStoreOperation(undefined, async () => {
      const session = await this.connection
        .collection('_Session')
        .findOne({ _session_token: { $eq: token } }, { ...LIMITS, projection: { _p_user: 1, expiresAt: 1 } });
      if (!session) return null;
      const user = parsePointerString(session['_p_user']);
      if (user?.className !== '_User' || !isUserId(user.objectId)) return null;
      const expiresAt: unknown = session['expiresAt'] ?? null;
      // An expiry that cannot be parsed counts as passed.
      if (expiresAt !== null && !(expiresAt instanceof Date && expiresAt > new Date())) return null;
      const userId = await this.findUser('objectId', user.objectId);
      return userId === null ? null : { userId, expiresAt };
    });
  }

  findUser(field: UserField, value: string): Promise<string | null> {
    return asStoreOperation(undefined, async () => {
      const column = field === 'objectId' ? '_id' : field;
      const [user, another] = await this.connection
        .collection('_User')
        .find({ [column]: { $eq: value } } as Document, { ...LIMITS, projection: { _id: 1 }, limit: 2 })
        .toArray();
      return user && !another && isUserId(user._id) ? user._id : null;
    });
  }

  rolesOfUser(userId: string): Promise<readonly string[]> {
    return asStoreOperation(undefined, async () => {
      if (!isUserId(userId)) return [];
      return this.closure(MEMBERS, [
        { $match: { relatedId: { $eq: userId } } },
        { $project: { held: '$owningId' } },
      ]);
    });
  }

  rolesOfRole(name: string): Promise<readonly string[] | null> {
    return asStoreOperation(undefined, async () => {
      const names = await this.closure('_Role', [
        { $match: { name: { $eq: name } } },
        { $limit: 1 },
        { $project: { held: '$_id' } },
      ]);
      return names.length === 0 ? null : names;
    });
  }

  private async closure(collection: string, start: readonly Document[]): Promise<string[]> {
    const rows = await this.connection
      .collection(collection)
      .aggregate<RoleEdges>([...start, ...UPWARDS], LIMITS)
      .toArray();
    const edges = rows.flatMap((row) => row.above);
    const names = await this.names([
      ...new Set([...rows.map((row) => row.held), ...edges.map((edge) => edge.owningId)]),
    ]);
    const reached = upwards(new Set(rows.map((row) => row.held)), edges, names);
    return [...new Set([...reached].map((id) => names.get(id) as string))].sort();
  }

  /** The names of the roles that exist: relation rows may refer to deleted roles. */
  private async names(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const names = new Map<string, string>();
    if (ids.length === 0) return names;
    const roles = this.connection
      .collection('_Role')
      .find<{ _id: string; name?: unknown }>(
        { _id: { $in: [...ids] } },
        { ...LIMITS, projection: { name: 1 } },
      );
    for (const { _id, name } of await roles.toArray()) {
      if (typeof name === 'string' && name !== '') names.set(_id, name);
    }
    return names;
  }
}

interface RoleEdges {
  readonly held: string;
  readonly above: readonly { readonly relatedId: string; readonly owningId: string }[];
}

/** Breadth-first over existing roles; a deleted role passes nothing on. */
function upwards(
  held: ReadonlySet<string>,
  edges: RoleEdges['above'],
  existing: ReadonlyMap<string, string>,
): ReadonlySet<string> {
  const parents = new Map<string, string[]>();
  for (const { relatedId, owningId } of edges) {
    parents.set(relatedId, [...(parents.get(relatedId) ?? []), owningId]);
  }
  const reached = new Set([...held].filter((id) => existing.has(id)));
  let frontier = [...reached];
  for (let depth = 0; depth < MAX_ROLE_DEPTH && frontier.length > 0; depth += 1) {
    const above = frontier.flatMap((id) => parents.get(id) ?? []);
    frontier = [...new Set(above)].filter((id) => existing.has(id) && !reached.has(id));
    for (const id of frontier) reached.add(id);
  }
  return reached;
}
