/** A thread that plays episodes of a team: it loads the recipe's code, and requests every response from the program. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Generation, Utterance } from '@drmas/engine/contract';
import { BackendError, messageOf, RecipeError } from '@drmas/engine/errors';
import { type AnsweredTurn, type EpisodeListener, onAbort } from '@drmas/engine/host';
import { rolloutContext } from '../../../gateway/rollouts.js';
import { loadRecipe } from '../../../method/recipe-files.js';
import {
  type PlayRequest,
  playEpisode,
  readable,
  remoteSpeakers,
  type SpeakerRequest,
} from '../../../teams/rollout.js';
import { ownThread } from '../../../teams/watchdog.js';
import type { FromPlayer, PlayerSettings, ToPlayer } from './player-messages.js';

const BEAT_MS = 50;

const { code, policies, beats, ...settings } = workerData as PlayerSettings;
Atomics.store(beats, 1, ownThread());
setInterval(() => Atomics.add(beats, 0, 1), BEAT_MS);

const send = (message: FromPlayer) => parentPort?.postMessage(message);
const waiting = new Map<
  number,
  { resolve: (value: Generation & Utterance) => void; reject: (error: unknown) => void }
>();
let calls = 0;

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

const context = rolloutContext(settings, remoteSpeakers(policies, ask), {
  warn: (message) => send({ type: 'warning', message }),
});

const loaded = loadRecipe(code.source, (codeHash) => {
  if (codeHash !== code.codeHash)
    throw new RecipeError(`the code of the recipe ${code.source} has changed since the run began`);
});

const open = new Map<number, AbortController>();

async function play(episode: number, request: PlayRequest, observed: boolean): Promise<void> {
  const controller = new AbortController();
  const { signal } = controller;
  open.set(episode, controller);
  try {
    const { team } = (await loaded).definition.input;
    const listener: EpisodeListener = {
      answered: ({ value: _, ...turn }: AnsweredTurn & { readonly value?: unknown }, time) =>
        send({ type: 'answered', episode, turn, time }),
    };
    const played = await playEpisode(context, { ...request, team, signal, ...(observed ? { listener } : {}) });
    try {
      send({ type: 'over', episode, played });
    } catch {
      send({ type: 'over', episode, played: readable(played) });
    }
  } catch (error) {
    send(signal.aborted ? { type: 'aborted', episode } : { type: 'broken', message: messageOf(error) });
  } finally {
    open.delete(episode);
  }
}

parentPort?.on('message', (message: ToPlayer) => {
  if (message.type === 'play') return void play(message.episode, message.request, message.observed);
  if (message.type === 'abort') return open.get(message.episode)?.abort(new Error(message.why));
  const call = waiting.get(message.call);
  waiting.delete(message.call);
  if (message.type === 'answer') call?.resolve(message.value as Generation & Utterance);
  else call?.reject(new BackendError(message.message));
});
