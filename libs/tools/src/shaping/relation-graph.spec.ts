import { describe, expect, it } from 'vitest';
import { sampleClass } from '../contracts/sample-records.js';
import { relationEdges, listRelations } from './relation-graph.js';

const pointer = (targetClass: string) => ({ type: 'Pointer', targetClass }) as const;
const relation = (targetClass: string) => ({ type: 'Relation', targetClass }) as const;

const USER = sampleClass('_User', {});
const POST = sampleClass('Post', { author: pointer('_User'), tags: relation('Tag') });
const TAG = sampleClass('Tag', {});

describe('the relation graph', () => {
  it('draws a pointer from the class it points to, and a relation from its holder', () => {
    expect(relationEdges([USER, POST, TAG])).toEqual([
      { from: '_User', to: 'Post', via: 'Post.author', cardinality: '1:N' },
      { from: 'Post', to: 'Tag', via: 'Post.tags', cardinality: 'N:M' },
    ]);
  });

  it('drops edges to classes the agent does not know', () => {
    expect(relationEdges([POST])).toEqual([]);
  });

  it('drops edges over fields outside the allowlist', () => {
    const narrow = sampleClass(
      'Post',
      { author: pointer('_User'), tags: relation('Tag') },
      { fields: ['tags'] },
    );
    expect(relationEdges([USER, narrow, TAG]).map(({ via }) => via)).toEqual(['Post.tags']);
  });

  it("leaves out the system's classes other than users and roles", () => {
    const installation = sampleClass('_Installation', { user: pointer('_User') });
    const role = sampleClass('_Role', { users: relation('_User') });
    expect(relationEdges([USER, installation, role]).map(({ via }) => via)).toEqual(['_Role.users']);
  });

  it('is limited to visible classes when some are declared so', () => {
    const visible = sampleClass(
      'Post',
      { author: pointer('_User'), tags: relation('Tag') },
      { visible: true },
    );
    const shown = sampleClass('Tag', {}, { visible: true });
    expect(relationEdges([USER, visible, shown]).map(({ via }) => via)).toEqual(['Post.tags']);
  });

  it('keeps to a subset of classes, both ends, where one is asked for', () => {
    expect(relationEdges([USER, POST, TAG], new Set(['Post', 'Tag'])).map(({ via }) => via)).toEqual([
      'Post.tags',
    ]);
  });

  it('drops names that are not identifiers', () => {
    expect(relationEdges([USER, sampleClass('Post', { 'bad name': pointer('_User') })])).toEqual([]);
  });

  it('shows for one class what it holds and what refers to it', () => {
    const edges = relationEdges([USER, POST, TAG]);
    expect(listRelations('Post', edges)).toEqual({ outgoing: [edges[1]], incoming: [edges[0]] });
    expect(listRelations('Other', edges)).toEqual({ outgoing: [], incoming: [] });
  });
});
