export { readResultsView } from './results-view.js';
export { ViewResources } from './view-resources.js';
export { ViewsModule } from './views.module.js';
