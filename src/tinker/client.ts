/** Door of `tinker`: training on servers of the Tinker protocol. */

export { type RefereeFinding, type RefereeReport, referee, refereeCases } from './client/referee/referee.js';
export { PROFILE_NAMES } from './client/server-profile.js';
export { server } from './client/tinker-backend.js';
export { tinker } from './client/tinker-spec.js';
