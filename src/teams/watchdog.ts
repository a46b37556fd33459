/** Door of `teams`: the thread that ends team code which does not return. */
export { enableWatchdog, watchTeams } from './rollout/watchdog/watchdog.js';
