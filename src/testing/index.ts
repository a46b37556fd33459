/** What `import ... from 'drmas/testing'` offers: a team played without a model, and a recipe trained on a tiny one. */
export type { GenerateRequest, Generation, PlayableHandle } from '../contract/sampling.js';
export type { StoredEpisode, StoredTurn } from '../store/episode-files.js';
export type { Agents } from '../teams/team.js';
export { type Lines, type PlayedEpisode, playScripted, type ScriptedToolCalls } from './play-scripted.js';
export { type Script, type ScriptedCall, type ScriptedSampler, scriptedSampler } from './scripted-sampler.js';
export { type TinyOptions, type TinyRun, trainTiny } from './train-tiny.js';
