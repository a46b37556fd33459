/** Door of `teams`: the thread that ends team code which does not return, and the time that code has held a thread. */
export { HeldTime, ownThread } from './rollout/watchdog/held-time.js';
export { libraryFolders, libraryPaths } from './rollout/watchdog/library-folders.js';
export { enableWatchdog, watchTeams } from './rollout/watchdog/watchdog.js';
