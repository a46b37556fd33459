import type { Generation, PlayableHandle, Sampling } from '../contract/sampling.js';
import type { Utterance } from '../contract/text-backend.js';
import type { Turn } from '../core/episode.js';
import { ArgumentError, EndpointError, messageOf } from '../core/errors.js';
import type { Message } from '../core/message.js';
import { digestOfIds, type RandomKey, randomKey } from '../core/random.js';
import { onAbort } from '../platform/on-abort.js';
import type { Agent } from '../teams/agent.js';
import type { Ask, AskOptions, Reply } from '../teams/team.js';
import { EpisodeFailure } from './episode-failure.js';
import { exactIds, withoutStop } from './exact-ids.js';
import { promptMessages } from './prompt-messages.js';
import type { AgentSettings, EndpointSettings, RolloutContext } from './rollout-context.js';
import type { RunningEpisode } from './running-episode.js';

/**
 * Characters of the longest tokens that vocabularies have (runs of spaces). A prompt that would not fit if it were made
 * of them is refused before it is tokenised, which takes seconds for megabytes.
 */
const LONGEST_TOKEN = 128;

/** An agent with its settings in this run. */
interface Role {
  readonly name: string;
  readonly agent: Agent;
  readonly settings: AgentSettings;
  readonly sampling: Sampling;
  readonly policy: PlayableHandle | EndpointSettings;
}

/**
 * A call at the time the team makes it. Its ordinals and its key are determined then, so they do not depend on the
 * order of the answers.
 */
interface Call {
  readonly turn: number;
  readonly call: number;
  readonly messages: readonly Message[];
  readonly observation?: string;
  readonly envStep?: number;
  readonly prompt: readonly number[];
  /** Names the random stream of the response. */
  readonly key: RandomKey;
}

/**
 * The team's agents as functions that `play` calls. @throws ArgumentError when an agent or its policy has no settings.
 */
export function agentsOf(context: RolloutContext, episode: RunningEpisode): Record<string, Ask> {
  const counter = { turns: 0 };
  const asks = Object.entries(episode.request.team.agents).map(([name, agent]) => {
    const settings = context.agents[name];
    const policy = settings && context.policies[settings.policy];
    if (settings === undefined || policy === undefined)
      throw new ArgumentError(`agent '${name}' has no ${settings === undefined ? 'settings' : 'policy'}`);
    const { evaluationSampling = settings.sampling } = settings;
    const ofPhase = episode.request.phase === 'evaluation' ? evaluationSampling : settings.sampling;
    const sampling = { ...ofPhase, ...episode.request.sampling };
    return [name, askOf(context, episode, { name, agent, settings, sampling, policy }, counter)] as const;
  });
  return Object.fromEntries(asks);
}

/** The calls of an episode so far, and whether they name the steps that they belong to. */
interface CallCounter {
  turns: number;
  namesSteps?: boolean;
}

/** The function by which `play` calls one agent. */
function askOf(context: RolloutContext, episode: RunningEpisode, role: Role, counter: CallCounter): Ask {
  let calls = 0;
  const nextKey = keysOf(context, episode, role.name);
  const { signal } = episode;
  return (input, options) => {
    const reply = new Promise<Reply>((resolve, reject) => {
      if (signal.aborted) throw signal.reason;
      const removeListener = onAbort(signal, () => reject(signal.reason));
      const attempt = (run: () => void) => {
        try {
          run();
        } catch (error) {
          const typed = error instanceof EpisodeFailure || error instanceof EndpointError;
          episode.fail(typed ? error : EpisodeFailure.of('error', error, role.name));
        }
      };
      attempt(() => {
        requireStep(role, options, counter);
        const read = promptOf(context, episode, role, { turn: counter.turns++, call: calls++ }, input, options);
        const call = { ...read, key: nextKey(read) };
        episode.replies.add(generate(episode, role, call), (result) =>
          attempt(() => {
            if (result.status === 'rejected' && result.reason instanceof EndpointError) throw result.reason;
            if (result.status === 'rejected')
              throw new EpisodeFailure('backend', `${role.name}: ${messageOf(result.reason)}`);
            const turn = turnOf(role, call, result.value);
            episode.turns.push(turn);
            removeListener();
            resolve(replyOf(turn));
          }),
        );
      });
    });
    reply.catch(() => {}); // a call that nobody awaits may end with its episode
    return reply;
  };
}

/** Checks the step that a call names. @throws EpisodeFailure when it is none, or the other calls name none */
function requireStep({ name }: Role, { envStep }: AskOptions = {}, counter: CallCounter): void {
  if (envStep !== undefined && !(Number.isInteger(envStep) && envStep >= 0))
    throw new EpisodeFailure('error', `${name}: envStep is ${String(envStep)}, expected an integer >= 0`);
  const names = envStep !== undefined;
  counter.namesSteps ??= names;
  if (counter.namesSteps !== names)
    throw new EpisodeFailure('error', `${name}: expected the envStep of every call of the episode, or of none`);
}

/**
 * The keys of an agent's calls in an episode. A key follows from what the agent reads and from how often it has read
 * the same before, and not from the call's place among the others: a team whose order of calls depends on a network
 * repeats itself all the same.
 */
function keysOf(
  { seed }: RolloutContext,
  { request: { phase, step, task, sample } }: RunningEpisode,
  agent: string,
): (read: Omit<Call, 'key'>) => RandomKey {
  const earlier = new Map<string, number>();
  return ({ prompt, messages }) => {
    const texts = messages.flatMap(({ role, content }) => [role, content]);
    const digest = prompt.length > 0 ? digestOfIds(prompt) : randomKey(...texts);
    const count = earlier.get(`${digest}`) ?? 0;
    earlier.set(`${digest}`, count + 1);
    return randomKey(seed, phase, step, task.id, sample, agent, ...digest, count);
  };
}

/**
 * Turns the team's input into what the agent reads.
 *
 * @throws EpisodeFailure when there are too many calls or the prompt is too long.
 */
function promptOf(
  { maxTurns, policies, agents }: RolloutContext,
  { turns }: RunningEpisode,
  { name, agent, sampling, policy }: Role,
  ordinals: Pick<Call, 'turn' | 'call'>,
  input: string | readonly Message[],
  { observation, envStep }: AskOptions = {},
): Omit<Call, 'key'> {
  if (observation !== undefined && typeof observation !== 'string')
    throw new EpisodeFailure('error', `${name}: the observation is ${String(observation)}, expected a text`);
  if (ordinals.turn >= maxTurns) throw new EpisodeFailure('too-many-turns', `more than ${maxTurns} calls`);
  const messages = promptMessages(agent.system, input);
  const call = {
    ...{ ...ordinals, messages },
    ...(observation === undefined ? {} : { observation }),
    ...(envStep === undefined ? {} : { envStep }),
  };
  if ('endpoint' in policy) return { ...call, prompt: [] };
  const tokenizerOf = (turn: Turn) => {
    const speaker = policies[agents[turn.agent]?.policy ?? ''];
    return speaker && 'tokenizer' in speaker ? speaker.tokenizer : undefined;
  };
  const characters = messages.reduce((sum, { content }) => sum + content.length, 0);
  if (characters > policy.context * LONGEST_TOKEN)
    throw new EpisodeFailure(
      'overlong',
      `${name}: a prompt of ${characters} characters exceeds the context of ${policy.context}`,
    );
  const prompt = policy.tokenizer.chat(messages, exactIds(turns, tokenizerOf, policy.tokenizer));
  const { maxTokens } = sampling;
  if (prompt.length + maxTokens > policy.context)
    throw new EpisodeFailure(
      'overlong',
      `${name}: a prompt of ${prompt.length} tokens and up to ${maxTokens} more exceed the context of ${policy.context}`,
    );
  return { ...call, prompt };
}

function generate(
  { signal }: RunningEpisode,
  { sampling, policy }: Role,
  { messages, prompt, key }: Call,
): Promise<Generation | Utterance> {
  if ('endpoint' in policy) return policy.endpoint.complete({ ...sampling, messages, seed: key[0] >>> 1 }, signal);
  return policy.generate({ ...sampling, prompt, stopTokens: policy.tokenizer.stopTokens, key }, signal);
}

function turnOf(role: Role, { key, ...call }: Call, answer: Generation | Utterance): Turn {
  const { name, settings, sampling } = role;
  const response = responseOf(role, answer);
  const value = parsed(role, response.text);
  const valid = value !== undefined;
  return Object.freeze({
    id: nameOf(key),
    ...call,
    agent: name,
    policy: settings.policy,
    ...response,
    temperature: sampling.temperature,
    finishReason: answer.finishReason,
    value,
    valid,
    penalty: valid ? 0 : settings.invalidPenalty,
    ...(settings.frozen === true ? { frozen: true } : {}),
  });
}

function parsed({ name, agent }: Role, text: string): unknown {
  try {
    return agent.parse(text);
  } catch (error) {
    throw EpisodeFailure.of('error', error, name);
  }
}

/** The fields of a turn that the answer determines: ids, log-probs and text, or an endpoint's text and counts. */
function responseOf(
  { policy }: Role,
  answer: Generation | Utterance,
): Pick<Turn, 'policyVersion' | 'response' | 'logprobs' | 'text' | 'endpoint'> {
  if ('text' in answer) {
    const { text, finishReason, ...endpoint } = answer;
    return { policyVersion: 0, response: [], logprobs: [], text, endpoint };
  }
  if (!('tokenizer' in policy)) throw new ArgumentError('token ids came from where none are sampled');
  const { tokens, logprobs, finishReason, policyVersion } = answer;
  const text = policy.tokenizer.decode(withoutStop(tokens, finishReason, policy.tokenizer));
  return { policyVersion, response: tokens, logprobs, text };
}

/** A key as 16 hexadecimal digits. */
const nameOf = (key: RandomKey) => key.map((word) => word.toString(16).padStart(8, '0')).join('');

function replyOf({ text, finishReason, turn, value }: Turn): Reply {
  const reply = { text, finishReason, turn };
  return value === undefined ? { ...reply, valid: false, value } : { ...reply, valid: true, value };
}
