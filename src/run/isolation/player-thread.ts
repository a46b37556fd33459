/** A thread that plays episodes of a team: loads the recipe's code, and asks the program for every response. */
import { parentPort, workerData } from 'node:worker_threads';
import { waysIn } from '../../agents/ways.js';
import type { Generation } from '../../contract/sampling.js';
import type { Utterance } from '../../contract/text-backend.js';
import { BackendError, messageOf, RecipeError } from '../../core/errors.js';
import type { AnsweredTurn, EpisodeObserver } from '../../core/play/play-observer.js';
import { runInScope } from '../../platform/async-scopes.js';
import { onAbort } from '../../platform/on-abort.js';
import { loadRecipe } from '../../recipe/load-recipe.js';
import { playEpisode } from '../../rollout/play-episode.js';
import type { RolloutContext } from '../../rollout/rollout-context.js';
import { type PlayRequest, readable, remoteSpeakers, type SpeakerRequest } from '../remote-speakers.js';
import type { FromPlayer, PlayerSettings, ToPlayer } from './player-messages.js';

const BEAT_MS = 50;

const { code, policies, beats, ...settings } = workerData as PlayerSettings;
setInterval(() => Atomics.add(beats, 0, 1), BEAT_MS);

const send = (message: FromPlayer) => parentPort?.postMessage(message);
const waiting = new Map<
  number,
  { resolve: (value: Generation & Utterance) => void; reject: (error: unknown) => void }
>();
let calls = 0;

/** Asks the program to have a policy or an endpoint answer. */
function ask(policy: string, request: SpeakerRequest, signal?: AbortSignal) {
  return new Promise<Generation & Utterance>((resolve, reject) => {
    const call = calls++;
    waiting.set(call, { resolve, reject });
    if (signal !== undefined)
      onAbort(signal, () => {
        if (!waiting.delete(call)) return;
        send({ type: 'cancel', call });
        reject(signal.reason);
      });
    send({ type: 'call', call, policy, request });
  });
}

const context: RolloutContext = {
  ...settings,
  policies: remoteSpeakers(policies, ask),
  inScope: runInScope,
  waysIn: (episode, asks, measure) => waysIn(episode, asks, measure, undefined),
  warn: (message) => send({ type: 'warning', message }),
};

const loaded = loadRecipe(code.source, (codeHash) => {
  if (codeHash !== code.codeHash)
    throw new RecipeError(`the code of the recipe ${code.source} has changed since the run began`);
});

async function play(episode: number, request: PlayRequest, observed: boolean): Promise<void> {
  try {
    const { team } = (await loaded).definition.input;
    const observer: EpisodeObserver = {
      within: (run) => run(),
      answered: ({ value: _, ...turn }: AnsweredTurn & { readonly value?: unknown }, time) =>
        send({ type: 'answered', episode, turn, time }),
      ended: () => {},
    };
    const played = await playEpisode(context, { ...request, team, ...(observed ? { observer } : {}) });
    try {
      send({ type: 'over', episode, played });
    } catch {
      send({ type: 'over', episode, played: readable(played) });
    }
  } catch (error) {
    send({ type: 'broken', message: messageOf(error) });
  }
}

parentPort?.on('message', (message: ToPlayer) => {
  if (message.type === 'play') return void play(message.episode, message.request, message.observed);
  const call = waiting.get(message.call);
  waiting.delete(message.call);
  if (message.type === 'answer') call?.resolve(message.value as Generation & Utterance);
  else call?.reject(new BackendError(message.message));
});
