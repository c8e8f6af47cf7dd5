export { VIEW_PAGES } from './view-resources.js';
export { ViewsModule } from './views.module.js';
