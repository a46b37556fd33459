/** Door of `dashboard`: the server of the live dashboard. */
export { startWatching } from './watch/watch-server.js';
