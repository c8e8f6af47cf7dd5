// Ends by itself once the application is closed: nothing here asks the process to.
import { openShop } from './suite.mjs';

const started = performance.now();
const shop = await openShop();
const opened = performance.now() - started;
const clerk = shop.as('clerk');
await clerk.call('count_books');
await clerk.explain('count_books');
await shop.reset();
await shop.close();
process.stdout.write(JSON.stringify({ opened: Math.round(opened) }));
