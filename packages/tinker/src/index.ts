/** Training on servers of the Tinker protocol, and a check of such servers. */

export { type RefereeFinding, type RefereeReport, referee, refereeCases } from './client/referee/referee.js';
export { PROFILE_NAMES } from './client/server-profile.js';
export { server } from './client/tinker-backend.js';
export type { TinkerInput } from './client/tinker-input.js';
export { tinker } from './client/tinker-spec.js';
