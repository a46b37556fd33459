/** Door of `tinker`: training on servers of the Tinker protocol. */
export { server } from './client/tinker-declaration.js';
export { type TinkerInput, tinker } from './client/tinker-spec.js';
