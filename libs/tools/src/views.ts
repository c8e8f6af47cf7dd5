/** Shows rows and groups as a table and a chart (docs/views.md). */
export const RESULTS_VIEW = 'ui://parley/results';
