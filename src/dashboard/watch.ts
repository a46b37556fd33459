/** Door of `dashboard`: the server of the live dashboard. */
export { RunCatalog } from './watch/run-catalog.js';
export { startWatching } from './watch/watch-server.js';
