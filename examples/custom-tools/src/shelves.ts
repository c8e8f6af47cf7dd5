export const SHELVES = ['A', 'B', 'C', 'D'] as const;
