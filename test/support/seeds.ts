/** A text that stands only where no agent of the tests may read: it must never appear on the wire. */
export const SECRET = 'S3CRET-c0ffee-never-on-the-wire';

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const favourites = (...ids: string[]) => ({
  __op: 'AddRelation',
  objects: ids.map((id) => pointer('Post', id)),
});
const at = (day: number) => `2025-01-${String(day).padStart(2, '0')}T10:00:00.000Z`;

/** Two tenants, a hidden class, denied columns, soft-deleted rows; small enough to know by heart. */
export const NEWSROOM = {
  schemas: [
    {
      className: 'Post',
      fields: {
        title: { type: 'String' },
        status: { type: 'String' },
        body: { type: 'String' },
        likes: { type: 'Number' },
        author: { type: 'Pointer', targetClass: 'Author' },
        publishedAt: { type: 'Date' },
        archived: { type: 'Boolean' },
        orgId: { type: 'String' },
        internalNote: { type: 'String' },
        contract: { type: 'Pointer', targetClass: 'Contract' },
        tags: { type: 'Array' },
      },
    },
    {
      className: 'Author',
      fields: {
        name: { type: 'String' },
        bio: { type: 'String' },
        ssn: { type: 'String' },
        orgId: { type: 'String' },
        favourites: { type: 'Relation', targetClass: 'Post' },
      },
    },
    { className: 'Contract', fields: { clause: { type: 'String' } } },
    { className: 'Empty', fields: { x: { type: 'Number' } } },
  ],
  users: [{ objectId: 'u1', username: 'ada', password: SECRET, email: 'ada@example.com' }],
  roles: [],
  sessions: [{ sessionToken: `r:${SECRET}`, user: 'u1', expiresAt: '2099-01-01T00:00:00.000Z' }],
  objects: {
    Author: [
      {
        objectId: 'a1',
        name: 'Ann',
        bio: 'Writes about tea',
        ssn: SECRET,
        orgId: 'acme',
        favourites: favourites('p01', 'p02'),
        createdAt: at(1),
      },
      {
        objectId: 'a2',
        name: 'Bob',
        bio: SECRET,
        ssn: SECRET,
        orgId: 'globex',
        favourites: favourites('p03', 'foreign'),
        createdAt: at(2),
      },
    ],
    Contract: [{ objectId: 'c1', clause: SECRET, createdAt: at(1) }],
    Post: [
      ...Array.from({ length: 60 }, (_, index) => ({
        objectId: `p${String(index).padStart(2, '0')}`,
        title: `Post ${index}`,
        status: index % 3 === 0 ? 'draft' : 'live',
        body: `Body of post ${index}`,
        likes: index,
        author: pointer('Author', 'a1'),
        publishedAt: { __type: 'Date', iso: at((index % 28) + 1) },
        archived: false,
        orgId: 'acme',
        internalNote: SECRET,
        contract: pointer('Contract', 'c1'),
        tags: ['tea', `t${index % 4}`],
        createdAt: at((index % 28) + 1),
      })),
      {
        objectId: 'gone',
        title: 'Archived',
        status: 'live',
        archived: true,
        orgId: 'acme',
        author: pointer('Author', 'a1'),
        likes: 1000,
        createdAt: at(28),
      },
      {
        objectId: 'foreign',
        title: SECRET,
        status: 'live',
        archived: false,
        orgId: 'globex',
        author: pointer('Author', 'a2'),
        likes: 2000,
        createdAt: at(28),
      },
    ],
  },
};

/** The policy that goes with NEWSROOM. */
export const NEWSROOM_POLICY = {
  classes: {
    Post: {
      description: 'Articles by our writers',
      fields: ['title', 'author', 'status', 'body', 'likes', 'publishedAt', 'archived', 'tags', 'contract'],
      largeFields: ['body'],
      canonicalFilter: { archived: { $ne: true } },
      tenantScope: { field: 'orgId' },
      properties: {
        status: { description: 'Where it is in its life', enum: { draft: 'not yet public', live: 'public' } },
      },
    },
    Author: {
      fields: ['name', 'bio', 'favourites'],
      joinFields: ['name'],
      largeFields: ['bio'],
      tenantScope: { field: 'orgId' },
    },
    Contract: { hidden: true },
    _User: { fields: ['username'] },
  },
};

/** An agent of tenant acme, callable from this machine without a key, with no rate limit to speak of. */
export const NEWSROOM_CONFIG = {
  agents: { analyst: { permissions: 'readonly', tenantId: 'acme', rateLimit: 1_000_000 } },
  auth: [{ anonymous: true, agent: 'analyst' }],
  policy: NEWSROOM_POLICY,
};
