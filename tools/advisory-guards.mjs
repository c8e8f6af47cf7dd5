// What stops the attack of each advisory, and how the source would read without it. `npm run test:advisories -- --prove`
// applies one at a time to a copy and expects the tests of that advisory to fail.

const policy = (path) => `libs/policy/src/${path}`;
const governed = (path) => `libs/data/src/governed/${path}`;

/** @typedef {{ advisory: string, guard: string, file: string, find: string, replace: string }} Guard */

/** @type {readonly Guard[]} */
export const GUARDS = [
  {
    advisory: 'GHSA-72hp-qff8-4pvv',
    guard: 'branches of a logical operator are judged',
    file: policy('where/translate-where.ts'),
    find: 'return this.conjunction(branch, access, level);',
    replace: 'return this.conjunction(branch, { ...access, readable: null, guarded: undefined }, level);',
  },
  {
    advisory: 'GHSA-72hp-qff8-4pvv',
    guard: 'and in pipelines',
    file: policy('pipeline/match.ts'),
    find: 'return [operator, value.map((branch) => resolveFilter(branch, frame, rules))];',
    replace: 'return [operator, value];',
  },
  {
    advisory: 'GHSA-r2m8-pxm9-9c4g',
    guard: 'a path is judged by its root',
    file: policy('model/class-access.ts'),
    find: 'orThrow(columnRefusal(context, written, takeRoot(wirePath), access));',
    replace:
      "if (!wirePath.includes('.')) orThrow(columnRefusal(context, written, takeRoot(wirePath), access));",
  },
  {
    advisory: 'GHSA-r2m8-pxm9-9c4g',
    guard: 'and in pipelines',
    file: policy('pipeline/frame.ts'),
    find: 'orThrow(columnRefusal(context, path, wire, this.access, introduced.keys()));',
    replace:
      'if (path === root) orThrow(columnRefusal(context, path, wire, this.access, introduced.keys()));',
  },
  {
    advisory: 'GHSA-j7mm-f4rv-6q6q',
    guard: 'no query names a protected column',
    file: policy('model/class-access.ts'),
    find: 'if (!secret && access.guarded?.hidden.has(root)) return refusals.protectedFieldRef(context, written, root);',
    replace: 'if (!secret && access.guarded?.hidden.has(root)) return null;',
  },
  {
    advisory: 'GHSA-mmg8-87c5-jrc2',
    guard: 'a logical operator takes a list',
    file: policy('where/translate-where.ts'),
    find: 'if (!Array.isArray(operand) || operand.length === 0) {',
    replace:
      'if (!Array.isArray(operand)) return Array.from(operand as ArrayLike<Where>);\n    if (operand.length === 0) {',
  },
  {
    advisory: 'GHSA-mmg8-87c5-jrc2',
    guard: 'and in pipelines',
    file: policy('pipeline/match.ts'),
    find: "      if (!Array.isArray(value))\n        throw invalidPipeline(`$match ${operator}`, 'its value is a list of conditions');",
    replace: 'if (!Array.isArray(value)) return [operator, Array.from(value as ArrayLike<unknown>)];',
  },
  {
    advisory: 'GHSA-wmwx-jr2p-4j4r',
    guard: 'the relation is a readable column of its owner',
    file: policy('where/cross-class.ts'),
    find: "resolveFieldPath(key, access, '$relatedTo key', rules.checkFields)",
    replace: "resolveFieldPath(key, access, '$relatedTo key', false)",
  },
  {
    advisory: 'GHSA-wmwx-jr2p-4j4r',
    guard: 'the owner is a row that the caller may read',
    file: governed('cross-class-answers.ts'),
    find: "if (asker === 'caller' && (await this.keepSeen(className, [objectId])).length === 0) return NOTHING;",
    replace: '',
  },
  {
    advisory: 'GHSA-wmwx-jr2p-4j4r',
    guard: 'of a class that the caller may get',
    file: policy('scope/agent-scope.ts'),
    find: "  owner: 'get',",
    replace: '  owner: null,',
  },
  {
    advisory: 'GHSA-g4v2-qx3q-4p64',
    guard: 'protected columns of sessions are protected columns',
    file: policy('scope/agent-scope.ts'),
    find: 'if (!columns) return declared;',
    replace: "if (!columns || declared.className === '_Session') return declared;",
  },
  {
    advisory: 'GHSA-g4v2-qx3q-4p64',
    guard: 'a caller’s sessions are its own',
    file: policy('rights/class-permissions.ts'),
    find: "      className === '_Session' ? requireOwner(userId, ['user'], this.schemas.get(className)) : null;",
    replace:
      "      className === '_Sessions' ? requireOwner(userId, ['user'], this.schemas.get(className)) : null;",
  },
  {
    advisory: 'GHSA-8xq9-g7ch-35hg',
    guard: 'the id of a user cannot read as a role',
    file: 'libs/core/src/identity.ts',
    find: 'const USER_ID = /^[A-Za-z0-9_-]{1,64}$/;',
    replace: 'const USER_ID = /^[A-Za-z0-9_:-]{1,64}$/;',
  },
  {
    advisory: 'GHSA-fcv6-fg5r-jm9q',
    guard: 'an included row meets the limits of its class',
    file: governed('included-rows.ts'),
    find: "const { where } = await this.rules.predicate(target.className, { canonical: false, operation: 'get' });",
    replace: 'const where = {};',
  },
  {
    advisory: 'GHSA-fcv6-fg5r-jm9q',
    guard: 'an included class passes the class gate',
    file: governed('included-rows.ts'),
    find: "createReach(this.call).reach(targetClass, 'include')",
    replace: 'this.call.scope.access(targetClass)',
  },
  {
    advisory: 'GHSA-2m6g-crv8-p3c6',
    guard: 'internal columns are no constraint',
    file: policy('model/class-access.ts'),
    find: '  if (hasInternalSegment(path)) {\n    throw blockFilter',
    replace: "  if (path === '') {\n    throw blockFilter",
  },
  {
    advisory: 'GHSA-2m6g-crv8-p3c6',
    guard: 'nor named in a pipeline, by key or by reference',
    file: policy('model/field-names.ts'),
    find: 'return INTERNAL.has(segment) || segment.startsWith(AUTH_DATA_PREFIX) || INTERNAL.has(toLowerCamel(segment));',
    replace: 'return false;',
  },
  {
    advisory: 'GHSA-prm5-8g2m-24gg',
    guard: 'no member is called __proto__',
    file: policy('model/field-names.ts'),
    find: "new Set(['__proto__', '_bsontype'])",
    replace: "new Set(['_bsontype'])",
  },
  {
    advisory: 'GHSA-prm5-8g2m-24gg',
    guard: 'no member is called _bsontype',
    file: policy('model/field-names.ts'),
    find: "new Set(['__proto__', '_bsontype'])",
    replace: "new Set(['__proto__'])",
  },
  {
    advisory: 'GHSA-93vw-8fm5-p2jf',
    guard: 'what a method writes is judged as any write',
    file: policy('write/written-value.ts'),
    find: "if (isCredentialOrRight(key)) refuseFields(`${field}: '${key}' may not be written`);",
    replace: '',
  },
  {
    advisory: 'GHSA-93vw-8fm5-p2jf',
    guard: 'a member called __proto__ is redacted as data',
    file: 'libs/core/src/read-json.ts',
    find: "if (name === '__proto__') {",
    replace: "if (name === '__prototype__') {",
  },
];
