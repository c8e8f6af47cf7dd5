import { NEWSROOM, NEWSROOM_CONFIG, NEWSROOM_POLICY } from './seeds.js';

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const date = (iso: string) => ({ __type: 'Date', iso });

/** What the newsroom has none of: lists of pointers, places, dates near midnight, text that a spreadsheet would run. */
const NOTES = {
  schema: {
    className: 'Note',
    fields: {
      text: { type: 'String' },
      links: { type: 'Array' },
      about: { type: 'Pointer', targetClass: 'Author' },
      writtenAt: { type: 'Date' },
      when: { type: 'String' },
      place: { type: 'GeoPoint' },
      words: { type: 'Number' },
    },
  },
  rows: [
    {
      objectId: 'n1',
      text: '=HYPERLINK("http://x")',
      links: [pointer('Author', 'a1'), pointer('Contract', 'c1')],
      about: pointer('Author', 'a1'),
      writtenAt: date('2024-12-31T23:30:00.000Z'),
      when: '2024-12-31',
      place: { __type: 'GeoPoint', latitude: 48, longitude: 11 },
      words: 10,
    },
    {
      objectId: 'n2',
      text: 'a, "b"',
      links: [pointer('Author', 'a1')],
      writtenAt: date('2025-03-30T00:30:00.000Z'),
      when: 'yesterday',
      place: { __type: 'GeoPoint', latitude: -33, longitude: 151 },
      words: 20,
    },
    { objectId: 'n3', about: pointer('Author', 'a2'), text: 'plain' },
  ],
};

const [post, ...others] = NEWSROOM.schemas;
/** The newsroom with indexes and notes. */
export const NOTEBOOK = {
  ...NEWSROOM,
  schemas: [
    { ...post, indexes: { by_status: { status: 1 }, by_tenant: { orgId: 1, status: 1 } } },
    ...others,
    NOTES.schema,
  ],
  objects: { ...NEWSROOM.objects, Note: NOTES.rows },
};

const agent = { tenantId: 'acme', rateLimit: 1_000_000 };
/** Agents that see less and less of it. @param policy switches besides the newsroom's classes */
export const notebookConfig = (policy: object = {}) => ({
  ...NEWSROOM_CONFIG,
  agents: {
    analyst: agent,
    liveOnly: { ...agent, filters: { Post: { status: 'live' } } },
    authorsOnly: { ...agent, classes: { only: ['Author'] } },
    noAuthors: { ...agent, classes: { except: ['Author'] } },
    stateless: { rateLimit: 1_000_000 },
    lean: { ...agent, tools: { profile: 'lean' } },
  },
  auth: [
    ...['liveOnly', 'authorsOnly', 'noAuthors', 'stateless', 'lean'].map((name) => ({
      apiKey: `key-of-${name}`,
      agent: name,
    })),
    { anonymous: true, agent: 'analyst' },
  ],
  policy: { ...NEWSROOM_POLICY, ...policy },
});

export const as = (name: string) => ({ 'X-MCP-API-Key': `key-of-${name}` });

/** Every tool of this part with arguments that it answers. */
export const TOOLS: readonly (readonly [tool: string, args: object])[] = [
  ['explain_query', {}],
  ['group_by', { field: 'status' }],
  ['group_by_date', { field: 'createdAt', interval: 'day' }],
  ['distinct', { field: 'status' }],
  ['export_data', {}],
  ['export_data', { pipeline: [{ $limit: 5 }] }],
];
export const GROUPING = TOOLS.slice(1, 4);
