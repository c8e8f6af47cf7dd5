// The tools of the servers that bring none.
import { z } from 'zod';

const filter = z.record(z.string(), z.unknown());

export const FIND = {
  description: 'Finds documents of a collection',
  inputSchema: z.object({ collection: z.string(), filter, limit: z.number().int().min(1).max(1000) }),
};
export const GROUP = {
  description: 'Runs an aggregation over a collection',
  inputSchema: z.object({ collection: z.string(), pipeline: z.array(filter).max(20) }),
};
export const COUNT = {
  description: 'Counts documents of a collection',
  inputSchema: z.object({ collection: z.string(), query: filter }),
};
