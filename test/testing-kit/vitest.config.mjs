export default { test: { include: ['with-vitest.mjs'], testTimeout: 60_000, hookTimeout: 60_000 } };
