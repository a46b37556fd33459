import type { Generation, Utterance } from '@drmas/engine/contract';
import { ArgumentError, DialectError, isGoneForGood, messageOf, plainCopy } from '@drmas/engine/errors';
import { type CallTime, onAbort } from '@drmas/engine/host';
import type { RandomKey } from '@drmas/engine/math';
import type { Turn } from '@drmas/engine/nouns';
import type { Ask, Reply } from '../team/team.js';
import { type CallCounter, isSignal, requireJudge, requireStep } from './ask-options.js';
import { keysOf, nameOf } from './call-keys.js';
import { EpisodeFailure } from './episode-failure.js';
import { ofAgents } from './own-doing.js';
import { type CallPrompt, CallPrompts, type ConfiguredAgent } from './prompts/call-prompts.js';
import { asAnswered } from './prompts/exact-ids.js';
import { readAnswer } from './read-answer.js';
import type { ForeignAskOptions, RolloutContext, TokenCounts } from './rollout-context.js';
import type { RunningEpisode } from './running-episode.js';

/**
 * A call at the time the team makes it. Its ordinals and its key are determined then, so they do not depend on the
 * order of the answers.
 */
interface OpenCall extends CallPrompt {
  readonly id: string;
  readonly turn: number;
  readonly call: number;
  /** Names the random stream of the response. */
  readonly key: RandomKey;
}

interface EpisodeAgents {
  readonly asks: Readonly<Record<string, Ask>>;
  /** The same agents for the reward, which may call frozen ones. */
  readonly judges: Readonly<Record<string, Ask>>;
  readonly counts: TokenCounts;
}

/**
 * The team's agents as functions that `play` calls. @throws ArgumentError when an agent or its policy has no settings.
 */
export function agentsOf(context: RolloutContext, episode: RunningEpisode): EpisodeAgents {
  const { team } = episode.request;
  const agents = Object.fromEntries(
    Object.entries(team.agents).map(([name, agent]) => {
      const system = context.agents[name]?.system;
      return [name, system === undefined ? agent : { ...agent, system }];
    }),
  );
  const prompts = new CallPrompts(context, agents, episode.turns);
  const shared = { counter: { turns: 0 }, prompts };
  const calling = Object.entries(agents).map(([name, agent]) => {
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
  return { asks: agentsFor('play'), judges: agentsFor('reward'), counts: prompts };
}

type AskedBy = 'play' | 'reward';

interface EpisodeParts {
  readonly counter: CallCounter;
  readonly prompts: CallPrompts;
}

/** The functions by which `play` and the reward call one agent. Their calls are counted together. */
function askOf(
  context: RolloutContext,
  episode: RunningEpisode,
  role: ConfiguredAgent,
  shared: EpisodeParts,
): (askedBy: AskedBy) => Ask {
  const { counter, prompts } = shared;
  let calls = 0;
  const nextKey = keysOf(context, episode, role.name);
  const {
    signal,
    request: { listener, ready },
  } = episode;
  return (askedBy) => (input, written) => {
    const options: ForeignAskOptions = written ?? {};
    const { probe } = options;
    const given = isSignal(options.signal) ? options.signal : undefined;
    const reply = new Promise<Reply>((resolve, reject) => {
      for (const each of [signal, given]) if (each?.aborted) throw each.reason;
      const listeners = [signal, given].map((each) => each && onAbort(each, () => reject(each.reason)));
      const stopListening = () => {
        for (const removeListener of listeners) removeListener?.();
      };
      const attempt = (run: () => void) => {
        try {
          run();
        } catch (error) {
          const refused = probe === undefined ? error : refusalOf(error);
          if (refused instanceof DialectError) {
            if (probe === undefined) {
              episode.calls++;
              episode.refuse(role.name);
            }
            stopListening();
            return reject(refused);
          }
          if (isGoneForGood(error)) return episode.fail(error);
          const failure = error instanceof EpisodeFailure ? error : EpisodeFailure.of('error', error, role.name);
          // No single agent is to blame for too many calls.
          episode.fail(failure.reason === 'too-many-turns' ? failure : failure.with({ agent: role.name }));
        }
      };
      /** An answer that is missing or does not fit ends an episode of `play`. The reward may ask its judge again. */
      const refuse = (error: unknown) => {
        if (askedBy === 'play') throw error;
        stopListening();
        reject(EpisodeFailure.is(error) ? error.with({ agent: role.name }) : error);
      };
      attempt(() => {
        if (askedBy === 'play') requireStep(role.name, options, counter);
        else requireJudge(role);
        if (askedBy === 'play' && episode.calls >= context.maxTurns)
          throw new EpisodeFailure('too-many-turns', `more than ${context.maxTurns} calls`);
        const read = prompts.of(role, input, options);
        const { key, fixed, giveBack } = nextKey({ ...read.request, toolChoice: read.toolChoice });
        const call = { ...read, id: nameOf(key), key, turn: counter.turns, call: calls };
        if (probe === undefined) {
          counter.turns++;
          if (askedBy === 'play') episode.calls++;
          calls++;
        }
        const settled = askedBy === 'play' ? episode.openCall(role.name, given) : undefined;
        const until = given === undefined ? signal : AbortSignal.any([signal, given]);
        const version = episode.request.versions?.[role.settings.policy];
        const begin = async () =>
          fixed === undefined ? generate(until, role, call, version, episode.turns) : answerOf(fixed);
        const answer = ready === undefined ? begin() : ready.then(begin);
        const time = listener?.answered && timeOf(answer, ready);
        (askedBy === 'play' ? episode.replies : episode.verdicts).add(answer, (result) =>
          attempt(() => {
            settled?.();
            if (given?.aborted) {
              stopListening();
              return giveBack();
            }
            // A call that fails ends the episode, and is rejected with the rest: its listeners stay.
            if (result.status === 'rejected' && isGoneForGood(result.reason)) throw result.reason;
            if (result.status === 'rejected') return refuse(noAnswer(role.name, result.reason));
            const { turn, value, thrown } = turnOf(role, call, result.value, askedBy);
            if (probe !== undefined && thrown !== undefined) throw thrown;
            if (probe !== undefined) {
              giveBack();
              stopListening();
              probe(turn);
              return resolve(replyOf(turn, value));
            }
            episode.turns.push(turn);
            if (time !== undefined) listener?.answered?.(turn, time());
            // Like an error of `play` about this output, it ends the episode, and the turn stays.
            if (thrown !== undefined)
              return refuse(
                ofAgents(
                  thrown,
                  episode.turns,
                  { team: episode.request.team, settings: context.agents },
                  { inParser: true },
                ),
              );
            prompts.add(turn, call);
            stopListening();
            resolve(replyOf(turn, value));
          }),
        );
      });
    });
    reply.catch(() => {}); // a call that nobody awaits may end with its episode
    return reply;
  };
}

const noAnswer = (agent: string, cause: unknown): EpisodeFailure =>
  new EpisodeFailure('backend', `${agent}: ${messageOf(cause)}`, {}, { cause });

/** A probe asks what the agent can do: an error is the answer to it, unless the model is gone. */
const refusalOf = (error: unknown): unknown =>
  error instanceof DialectError || isGoneForGood(error)
    ? error
    : new DialectError(400, 'invalid_request', messageOf(error));

function generate(
  signal: AbortSignal,
  { name, sampling, policy }: ConfiguredAgent,
  { request: { messages, prompt, tools }, key, toolChoice, maxTokens }: OpenCall,
  version: number | undefined,
  turns: readonly Turn[],
): Promise<Generation | Utterance> {
  const settings = { ...sampling, maxTokens };
  if (!('endpoint' in policy)) {
    const kept = version === undefined ? {} : { version };
    const { stopTokens } = policy.tokenizer;
    return policy.generate({ ...settings, agent: name, prompt, stopTokens, key, ...kept }, signal);
  }
  const offer = { ...(tools === undefined ? {} : { tools }), ...(toolChoice === undefined ? {} : { toolChoice }) };
  const own = turns.filter(({ agent }) => agent === name);
  const said = asAnswered(messages, own);
  return policy.endpoint.complete({ ...settings, messages: said, ...offer, seed: key[0] >>> 1 }, signal);
}

const answerOf = ({ response, logprobs, finishReason, policyVersion }: Turn): Generation => ({
  tokens: [...response],
  logprobs: [...logprobs],
  finishReason,
  policyVersion,
});

/** When work began, now or when `ready` settled, and when it was done. */
function timeOf(work: Promise<unknown>, ready?: Promise<unknown>): () => CallTime {
  const now = () => performance.timeOrigin + performance.now();
  let start = now();
  ready?.then(() => {
    start = now();
  });
  let end: number | undefined;
  const done = () => {
    end = now();
  };
  work.then(done, done);
  return () => ({ start, end: end ?? now() });
}

function turnOf(
  role: ConfiguredAgent,
  call: OpenCall,
  answer: Generation | Utterance,
  askedBy: AskedBy,
): { readonly turn: Turn; readonly value: unknown; readonly thrown?: EpisodeFailure } {
  const { name, settings, sampling } = role;
  const { answered, ...read } = readAnswer(role, call, answer);
  const { id, request, turn, call: nth, opening, encoded } = call;
  const played = Object.freeze({
    id,
    ...request,
    turn,
    call: nth,
    ...(opening.length === 0 ? {} : { prefilled: opening.length }),
    ...(encoded?.history === undefined ? {} : { history: encoded.history }),
    agent: name,
    policy: settings.policy,
    temperature: sampling.temperature,
    ...answered,
    value: plainCopy(answered.value), // the program may change its own
    ...(settings.frozen === true ? { frozen: true as const } : {}),
    ...(askedBy === 'reward' ? { judging: true as const } : {}),
  });
  return { turn: played, value: answered.value, ...read };
}

/** The reply as the program's own: the turn keeps its parts as the agent wrote them. The value is the parser's. */
function replyOf(
  { id = '', text, content = text, reasoning, toolCalls = [], finishReason, turn, valid }: Turn,
  value: unknown,
): Reply {
  const thought = reasoning === undefined ? {} : { reasoning };
  const reply = { id, text, content, ...thought, toolCalls: plainCopy(toolCalls), finishReason, turn };
  return { ...reply, valid, value };
}
