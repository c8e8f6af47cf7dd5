import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { GUARDS } from '../../../tools/advisory-guards.mjs';

it.each(GUARDS)(
  '$guard of $advisory stands once in $file, where its proof takes it out',
  ({ file, find }) => {
    expect(readFileSync(file, 'utf8').split(find)).toHaveLength(2);
  },
);
