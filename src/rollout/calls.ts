import type { Generation, Sampling } from '../contract/sampling.js';
import type { Utterance } from '../contract/text-backend.js';
import type { Turn } from '../core/episode.js';
import { ArgumentError, EndpointError, messageOf } from '../core/errors.js';
import type { Message } from '../core/message.js';
import { randomKey } from '../core/random.js';
import type { Agent } from '../teams/agent.js';
import type { Ask, AskOptions, Reply } from '../teams/team.js';
import { EpisodeFailure } from './episode-failure.js';
import { exactIds, withoutStop } from './exact-ids.js';
import type { OrderedReplies } from './ordered-replies.js';
import { conversation } from './prompt-messages.js';
import type {
  AgentSettings,
  EndpointSettings,
  EpisodeRequest,
  PolicySettings,
  RolloutContext,
} from './rollout-context.js';

/** The episode that calls belong to. */
export interface Stage {
  readonly request: EpisodeRequest;
  readonly replies: OrderedReplies;
  /** Grows by one with every reply that is handed over. */
  readonly turns: Turn[];
  readonly signal: AbortSignal;
  /** Ends the episode; with what is no EpisodeFailure, the run. */
  fail(failure: unknown): void;
}

interface Role {
  readonly name: string;
  readonly agent: Agent;
  readonly settings: AgentSettings;
  readonly sampling: Sampling;
  readonly policy: PolicySettings | EndpointSettings;
}

/** A call as it was made. Its ordinals were taken then, so they do not depend on what is answered first. */
interface Call {
  readonly turn: number;
  readonly call: number;
  readonly messages: readonly Message[];
  readonly observation?: string;
  readonly prompt: readonly number[];
}

/** The team's agents as functions that `play` calls. @throws ArgumentError when an agent or its policy has no settings. */
export function agentsOf(context: RolloutContext, stage: Stage): Record<string, Ask> {
  let made = 0;
  const nextTurn = () => made++;
  const asks = Object.entries(stage.request.team.agents).map(([name, agent]) => {
    const settings = context.agents[name];
    const policy = settings && context.policies[settings.policy];
    if (settings === undefined || policy === undefined)
      throw new ArgumentError(`agent '${name}' has no ${settings === undefined ? 'settings' : 'policy'}`);
    const sampling = { ...settings.sampling, ...stage.request.sampling };
    return [name, askOf(context, stage, { name, agent, settings, sampling, policy }, nextTurn)] as const;
  });
  return Object.fromEntries(asks);
}

function askOf(context: RolloutContext, stage: Stage, role: Role, nextTurn: () => number): Ask {
  let calls = 0;
  return (input, options) =>
    new Promise<Reply>((resolve) => {
      if (stage.signal.aborted) return; // the episode is over: nothing is asked and nothing answered
      const attempt = (run: () => void) => {
        try {
          run();
        } catch (error) {
          const known = error instanceof EpisodeFailure || error instanceof EndpointError;
          stage.fail(known ? error : new EpisodeFailure('error', `${role.name}: ${messageOf(error)}`));
        }
      };
      attempt(() => {
        const call = begin(context, stage, role, { turn: nextTurn(), call: calls++ }, input, options);
        stage.replies.add(generate(context, stage, role, call), (result) =>
          attempt(() => {
            if (result.status === 'rejected' && result.reason instanceof EndpointError) throw result.reason;
            if (result.status === 'rejected')
              throw new EpisodeFailure('backend', `${role.name}: ${messageOf(result.reason)}`);
            const turn = turnOf(role, call, result.value);
            stage.turns.push(turn);
            resolve(replyOf(turn));
          }),
        );
      });
    });
}

function begin(
  { maxTurns, policies, agents }: RolloutContext,
  { turns }: Stage,
  { name, agent, sampling, policy }: Role,
  ordinals: Pick<Call, 'turn' | 'call'>,
  input: string | readonly Message[],
  { observation }: AskOptions = {},
): Call {
  if (observation !== undefined && typeof observation !== 'string')
    throw new EpisodeFailure('error', `${name}: the observation is ${String(observation)}, expected a text`);
  if (ordinals.turn >= maxTurns) throw new EpisodeFailure('too-many-turns', `more than ${maxTurns} calls`);
  const messages = conversation(agent.system, input);
  const asked = { ...ordinals, messages, ...(observation === undefined ? {} : { observation }) };
  if ('endpoint' in policy) return { ...asked, prompt: [] };
  const tokenizerOf = (turn: Turn) => {
    const speaker = policies[agents[turn.agent]?.policy ?? ''];
    return speaker && 'tokenizer' in speaker ? speaker.tokenizer : undefined;
  };
  const prompt = policy.tokenizer.chat(messages, exactIds(turns, tokenizerOf, policy.tokenizer));
  const { maxTokens } = sampling;
  if (prompt.length + maxTokens > policy.context)
    throw new EpisodeFailure(
      'overlong',
      `${name}: a prompt of ${prompt.length} tokens and up to ${maxTokens} more exceed the context of ${policy.context}`,
    );
  return { ...asked, prompt };
}

function generate(
  { sampler, seed }: RolloutContext,
  { request: { phase, step, task, sample }, signal }: Stage,
  { name, settings, sampling, policy }: Role,
  { call, messages, prompt }: Call,
): Promise<Generation | Utterance> {
  const key = randomKey(seed, phase, step, task.id, sample, name, call);
  if ('endpoint' in policy) return policy.endpoint.complete({ ...sampling, messages, seed: key[0] >>> 1 }, signal);
  return sampler.generate(
    { ...sampling, policy: settings.policy, prompt, stopTokens: policy.tokenizer.stopTokens, key },
    signal,
  );
}

function turnOf(role: Role, call: Call, answer: Generation | Utterance): Turn {
  const { name, agent, settings, sampling } = role;
  const said = saidIn(role, answer);
  const value = agent.parse(said.text);
  const valid = value !== undefined;
  return {
    ...call,
    agent: name,
    policy: settings.policy,
    ...said,
    temperature: sampling.temperature,
    finishReason: answer.finishReason,
    value,
    valid,
    penalty: valid ? 0 : settings.invalidPenalty,
    ...(settings.frozen === true ? { frozen: true } : {}),
  };
}

function saidIn(
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

function replyOf({ text, finishReason, turn, value }: Turn): Reply {
  const said = { text, finishReason, turn };
  return value === undefined ? { ...said, valid: false, value } : { ...said, valid: true, value };
}
