// No bounds of its own: whoever runs it has one, and the machine may be busy.
export default {
  test: { include: ['with-vitest.mjs'], pool: 'threads', isolate: false, testTimeout: 0, hookTimeout: 0 },
};
