/** The exports of 'drmas/testing': a team played without a model, and a recipe trained on a tiny one. */
export type { GenerateRequest, Generation, PlayableHandle } from '@drmas/engine/contract';
export type { StoredEpisode, StoredTurn } from '../../method/store.js';
export type { Agents } from '../../teams/index.js';
export { type Lines, type PlayedEpisode, playScripted, type ScriptedToolCalls } from './play-scripted.js';
export { type Script, type ScriptedCall, type ScriptedSampler, scriptedSampler } from './scripted-sampler.js';
export { type TinyOptions, type TinyRun, trainTiny } from './train-tiny.js';
