import type { Generation, PlayableHandle, Sampling } from '../contract/sampling.js';
import type { Utterance } from '../contract/text-backend.js';
import type { Turn } from '../core/episode.js';
import { ArgumentError, EndpointError, messageOf } from '../core/errors.js';
import type { Message, Tool } from '../core/message.js';
import type { CallTime } from '../core/play/play-observer.js';
import type { RandomKey } from '../core/random.js';
import { onAbort } from '../platform/on-abort.js';
import type { Agent } from '../teams/agent.js';
import type { Ask, AskOptions, Reply } from '../teams/team.js';
import { type CallCounter, checkedOptions, openingOf, requireJudge, requireStep } from './ask-options.js';
import { keysOf } from './call-keys.js';
import { EpisodeFailure } from './episode-failure.js';
import { type Encoded, ExactConversations, isSameTokenizer } from './exact-ids.js';
import { promptMessages } from './prompt-messages.js';
import { readAnswer, type Speaker } from './read-answer.js';
import type { ForeignAskOptions, MeasurePrompt, RolloutContext } from './rollout-context.js';
import type { RunningEpisode } from './running-episode.js';

/**
 * Characters of the longest tokens that vocabularies have (runs of spaces). A prompt that would not fit if it were made
 * of them is refused before it is tokenised, which takes seconds for megabytes.
 */
const LONGEST_TOKEN = 128;

/** An agent with its settings in this run. */
interface Role extends Speaker {
  readonly sampling: Sampling;
}

/**
 * A call at the time the team makes it. Its ordinals and its key are determined then, so they do not depend on the
 * order of the answers.
 */
interface Call extends Omit<ForeignAskOptions, 'signal' | 'maxTokens'> {
  readonly turn: number;
  readonly call: number;
  readonly messages: readonly Message[];
  readonly maxTokens: number;
  /** It ends with `opening`. */
  readonly prompt: readonly number[];
  /** The beginning of the response, where a call of a tool is required; else empty. */
  readonly opening: readonly number[];
  /** What the prompt was made of; absent for an endpoint. */
  readonly encoded?: Encoded;
  /** Names the random stream of the response. */
  readonly key: RandomKey;
}

/** The agents of an episode. */
interface EpisodeAgents {
  readonly asks: Readonly<Record<string, Ask>>;
  /** The same agents for the reward, which may ask some of them. */
  readonly judges: Readonly<Record<string, Ask>>;
  readonly measure: MeasurePrompt;
}

/**
 * The team's agents as functions that `play` calls. @throws ArgumentError when an agent or its policy has no settings.
 */
export function agentsOf(context: RolloutContext, episode: RunningEpisode): EpisodeAgents {
  const shared = { counter: { turns: 0 }, conversations: new ExactConversations() };
  const calling = Object.entries(episode.request.team.agents).map(([name, agent]) => {
    const settings = context.agents[name];
    const policy = settings && context.policies[settings.policy];
    if (settings === undefined || policy === undefined)
      throw new ArgumentError(`agent '${name}' has no ${settings === undefined ? 'settings' : 'policy'}`);
    const { evaluationSampling = settings.sampling } = settings;
    const ofPhase = episode.request.phase === 'evaluation' ? evaluationSampling : settings.sampling;
    const sampling = { ...ofPhase, ...episode.request.sampling };
    return [name, askOf(context, episode, { name, agent, settings, sampling, policy }, shared)] as const;
  });
  const agentsFor = (by: AskedBy) => Object.fromEntries(calling.map(([name, ask]) => [name, ask(by)]));
  return { asks: agentsFor('play'), judges: agentsFor('reward'), measure: measureOf(context, episode, shared) };
}

type AskedBy = 'play' | 'reward';

/** What the agents of an episode have together. */
interface Shared {
  readonly counter: CallCounter;
  readonly conversations: ExactConversations;
}

/** The functions by which `play` and the reward call one agent. Their calls are counted together. */
function askOf(
  context: RolloutContext,
  episode: RunningEpisode,
  role: Role,
  shared: Shared,
): (askedBy: AskedBy) => Ask {
  const { counter, conversations } = shared;
  let calls = 0;
  const nextKey = keysOf(context, episode, role.name);
  const {
    signal,
    request: { observer },
  } = episode;
  return (askedBy) => (input, options) => {
    const given = options?.signal;
    const reply = new Promise<Reply>((resolve, reject) => {
      for (const each of [signal, given]) if (each?.aborted) throw each.reason;
      const listeners = [signal, given].map((each) => each && onAbort(each, () => reject(each.reason)));
      const attempt = (run: () => void) => {
        try {
          run();
        } catch (error) {
          const typed = error instanceof EpisodeFailure || error instanceof EndpointError;
          episode.fail(typed ? error : EpisodeFailure.of('error', error, role.name));
        }
      };
      attempt(() => {
        if (askedBy === 'play') requireStep(role.name, options, counter);
        else requireJudge(role);
        const read = promptOf(
          context,
          episode,
          role,
          conversations,
          { turn: counter.turns++, call: calls++ },
          input,
          options,
        );
        const { key, giveBack } = nextKey(read);
        const call = { ...read, key };
        const until = given === undefined ? signal : AbortSignal.any([signal, given]);
        const version = episode.request.versions?.[role.settings.policy];
        const answer = generate(until, role, call, version);
        const time = observer && timeOf(answer);
        (askedBy === 'play' ? episode.replies : episode.verdicts).add(answer, (result) =>
          attempt(() => {
            if (given?.aborted) {
              for (const removeListener of listeners) removeListener?.();
              return giveBack();
            }
            // A call that fails ends the episode, and is rejected with the rest: its listeners stay.
            if (result.status === 'rejected' && result.reason instanceof EndpointError) throw result.reason;
            if (result.status === 'rejected')
              throw new EpisodeFailure('backend', `${role.name}: ${messageOf(result.reason)}`);
            const turn = turnOf(role, call, result.value, askedBy);
            episode.turns.push(turn);
            if (time !== undefined) observer?.answered(turn, time());
            if (call.encoded !== undefined) conversations.add(turn, call.encoded);
            for (const removeListener of listeners) removeListener?.();
            resolve(replyOf(turn));
          }),
        );
      });
    });
    reply.catch(() => {}); // a call that nobody awaits may end with its episode
    return reply;
  };
}

/**
 * Turns the team's input into what the agent reads.
 *
 * @throws EpisodeFailure when there are too many calls, an option is wrong or the prompt is too long.
 */
function promptOf(
  context: RolloutContext,
  { turns }: RunningEpisode,
  role: Role,
  conversations: ExactConversations,
  ordinals: Pick<Call, 'turn' | 'call'>,
  input: string | readonly Message[],
  options: AskOptions = {},
): Omit<Call, 'key'> {
  const { name, agent, sampling, policy } = role;
  if (ordinals.turn >= context.maxTurns)
    throw new EpisodeFailure('too-many-turns', `more than ${context.maxTurns} calls`);
  const { maxTokens = sampling.maxTokens, ...given } = checkedOptions(role, options);
  const messages = promptMessages(agent.system, input, given.responseSchema);
  const call = { ...ordinals, messages, ...given, maxTokens: Math.min(maxTokens, sampling.maxTokens) };
  if ('endpoint' in policy) return { ...call, prompt: [], opening: [] };
  const characters = [...(given.tools ?? []), ...messages].reduce((sum, part) => sum + charactersOf(part), 0);
  if (characters > policy.context * LONGEST_TOKEN)
    throw new EpisodeFailure(
      'overlong',
      `${name}: a prompt of ${characters} characters exceeds the context of ${policy.context}`,
    );
  const { prompt, opening, encoded } = idsOf(context, turns, { agent, policy }, conversations, messages, given);
  if (prompt.length + call.maxTokens > policy.context)
    throw new EpisodeFailure(
      'overlong',
      `${name}: a prompt of ${prompt.length} tokens and up to ${call.maxTokens} more exceed the context of ${policy.context}`,
    );
  return { ...call, prompt, opening, encoded };
}

/** The ids that are fed for these messages, with the beginning of the response where one is written for the agent. */
function idsOf(
  { policies, agents }: RolloutContext,
  turns: readonly Turn[],
  { agent, policy: { tokenizer } }: { readonly agent: Agent; readonly policy: PlayableHandle },
  conversations: ExactConversations,
  messages: readonly Message[],
  given: AskOptions,
) {
  const opening = tokenizer.encode(openingOf(agent, given));
  const sameIds = turns.filter((turn) => {
    const speaker = policies[agents[turn.agent]?.policy ?? ''];
    return speaker !== undefined && 'tokenizer' in speaker && isSameTokenizer(speaker.tokenizer, tokenizer);
  });
  const encoded = conversations.encode({ messages, tools: given.tools }, sameIds, tokenizer);
  return { prompt: [...encoded.ids, ...opening], opening, encoded };
}

/** Measures the prompts of an episode as calls would read them. */
function measureOf(
  context: RolloutContext,
  { request: { team }, turns }: RunningEpisode,
  { conversations }: Shared,
): MeasurePrompt {
  return (name, input, options) => {
    const agent = team.agents[name];
    const policy = context.policies[context.agents[name]?.policy ?? ''];
    if (agent === undefined || policy === undefined || 'endpoint' in policy) return undefined;
    const messages = promptMessages(agent.system, input, options.responseSchema);
    const { prompt } = idsOf(context, turns, { agent, policy }, conversations, messages, options);
    return { tokens: prompt.length, context: policy.context };
  };
}

function charactersOf(part: Tool | Message): number {
  if ('parameters' in part) return JSON.stringify(part).length;
  const { content, toolCalls = [] } = part;
  return toolCalls.reduce((sum, call) => sum + call.name.length + call.arguments.length, content.length);
}

function generate(
  signal: AbortSignal,
  { sampling, policy }: Role,
  { messages, prompt, key, tools, toolChoice, maxTokens }: Call,
  version: number | undefined,
): Promise<Generation | Utterance> {
  const settings = { ...sampling, maxTokens };
  if (!('endpoint' in policy)) {
    const kept = version === undefined ? {} : { version };
    return policy.generate({ ...settings, prompt, stopTokens: policy.tokenizer.stopTokens, key, ...kept }, signal);
  }
  const offer = { ...(tools === undefined ? {} : { tools }), ...(toolChoice === undefined ? {} : { toolChoice }) };
  return policy.endpoint.complete({ ...settings, messages, ...offer, seed: key[0] >>> 1 }, signal);
}

/** When work began, and when it was done. */
function timeOf(work: Promise<unknown>): () => CallTime {
  const now = () => performance.timeOrigin + performance.now();
  const start = now();
  let end: number | undefined;
  const done = () => {
    end = now();
  };
  work.then(done, done);
  return () => ({ start, end: end ?? now() });
}

function turnOf(role: Role, call: Call, answer: Generation | Utterance, askedBy: AskedBy): Turn {
  const { name, settings, sampling } = role;
  const { key, opening, maxTokens: _, toolChoice, responseSchema, encoded, ...read } = call;
  const id = nameOf(key);
  const choice = toolChoice === undefined ? {} : { toolChoice };
  const question = { id, opening, ...read, ...choice, ...(responseSchema === undefined ? {} : { responseSchema }) };
  return Object.freeze({
    id,
    ...read,
    ...(opening.length === 0 ? {} : { prefilled: opening.length }),
    ...(encoded?.history === undefined ? {} : { history: encoded.history }),
    agent: name,
    policy: settings.policy,
    temperature: sampling.temperature,
    ...readAnswer(role, question, answer),
    ...(settings.frozen === true ? { frozen: true } : {}),
    ...(askedBy === 'reward' ? { judging: true } : {}),
  });
}

/** A key as 16 hexadecimal digits. */
const nameOf = (key: RandomKey) => key.map((word) => word.toString(16).padStart(8, '0')).join('');

function replyOf({
  id = '',
  text,
  content = text,
  reasoning,
  toolCalls = [],
  finishReason,
  turn,
  value,
  valid,
}: Turn): Reply {
  const thought = reasoning === undefined ? {} : { reasoning };
  const reply = { id, text, content, ...thought, toolCalls, finishReason, turn };
  return valid ? { ...reply, valid, value } : { ...reply, valid: false, value: undefined };
}
