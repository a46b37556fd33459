/** A thread that plays episodes of a team: loads the recipe's code, and asks the program for every response. */
import { parentPort, workerData } from 'node:worker_threads';
import { waysIn } from '../../agents/ways.js';
import type { Generation, PlayableHandle } from '../../contract/sampling.js';
import type { TextBackend, Utterance } from '../../contract/text-backend.js';
import type { Episode } from '../../core/episode.js';
import { BackendError, messageOf, RecipeError } from '../../core/errors.js';
import { createTokenizer } from '../../model/tokenizers/create-tokenizer.js';
import { runInScope } from '../../platform/async-scopes.js';
import { onAbort } from '../../platform/on-abort.js';
import { loadRecipe } from '../../recipe/load-recipe.js';
import { playEpisode } from '../../rollout/play-episode.js';
import type { RolloutContext } from '../../rollout/rollout-context.js';
import type { FromPlayer, PlayerSettings, PlayRequest, ToPlayer } from './player-messages.js';

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
function ask(policy: string, request: Extract<FromPlayer, { type: 'call' }>['request'], signal?: AbortSignal) {
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

function handleOf([policy, known]: [string, PlayerSettings['policies'][string]]): RolloutContext['policies'][string] {
  if (known === 'endpoint') {
    const endpoint: TextBackend = { complete: (request, signal) => ask(policy, request, signal) };
    return { endpoint };
  }
  const handle: PlayableHandle = {
    tokenizer: createTokenizer(known.tokenizer),
    context: known.context,
    generate: (request, signal) => ask(policy, request, signal),
  };
  return handle;
}

const context: RolloutContext = {
  ...settings,
  policies: Object.fromEntries(Object.entries(policies).map((entry) => [entry[0], handleOf(entry)])),
  inScope: runInScope,
  waysIn: (episode, asks, measure) => waysIn(episode, asks, measure, undefined),
  warn: (message) => send({ type: 'warning', message }),
};

const loaded = loadRecipe(code.source, (codeHash) => {
  if (codeHash !== code.codeHash)
    throw new RecipeError(`the code of the recipe ${code.source} has changed since the run began`);
});

async function play(episode: number, request: PlayRequest): Promise<void> {
  try {
    const { team } = (await loaded).definition.input;
    const played = await playEpisode(context, { ...request, team });
    try {
      send({ type: 'over', episode, played });
    } catch {
      send({ type: 'over', episode, played: readable(played) });
    }
  } catch (error) {
    send({ type: 'broken', message: messageOf(error) });
  }
}

/** An episode whose outcome or values hold what cannot be copied, such as functions: they are kept as JSON has them. */
function readable(played: Episode): Episode {
  const turns = played.turns.map((turn) => ({ ...turn, value: jsonOf(turn.value) }));
  return { ...played, turns, outcome: jsonOf(played.outcome) };
}

function jsonOf(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value));
  } catch {
    return undefined;
  }
}

parentPort?.on('message', (message: ToPlayer) => {
  if (message.type === 'play') return void play(message.episode, message.request);
  const call = waiting.get(message.call);
  waiting.delete(message.call);
  if (message.type === 'answer') call?.resolve(message.value as Generation & Utterance);
  else call?.reject(new BackendError(message.message));
});
