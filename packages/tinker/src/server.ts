/** A server of the Tinker protocol. */
export { openTinker, type TinkerRequest } from './server/open-tinker.js';
