/** Compares an episode that a worker hands in with the answers that the run itself sampled for it. */

import type { GenerateRequest, Generation, Sampling, TextRequest, Utterance } from '@drmas/engine/contract';
import { isObject, isSmall, messageOf, parseAt } from '@drmas/engine/errors';
import type { Episode, Turn } from '@drmas/engine/nouns';
import { z } from 'zod';
import {
  type AgentSettings,
  asAnswered,
  failedScore,
  finiteReward,
  isCallName,
  nameOf,
  type PlayRequest,
  type RolloutContext,
  type SpeakerRequest,
  withoutStop,
} from '../../teams/rollout.js';
import { ids, listOf, listOfNumbers, MOST_MESSAGES, MOST_TOOLS } from './wire.js';

interface GivenAnswer {
  readonly policy: string;
  readonly request: SpeakerRequest;
  readonly answer: Generation | Utterance;
}

/** The most calls of an episode: a worker whose program loops would fill the run's memory. */
const MOST_CALLS = 20_000;

export class AnsweredCalls {
  readonly #byName = new Map<string, GivenAnswer[]>();
  #count = 0;

  /** The calls that the episode has begun. */
  get count(): number {
    return this.#count;
  }

  /** @throws RangeError if there is no room for another call */
  begin(): void {
    if (++this.#count > MOST_CALLS) throw new RangeError(`an episode has at most ${MOST_CALLS} calls`);
  }

  add(policy: string, request: SpeakerRequest, answer: Generation | Utterance): void {
    const name = 'key' in request ? nameOf(request.key) : seedName(request.seed);
    const others = this.#byName.get(name);
    if (others === undefined) this.#byName.set(name, [{ policy, request, answer }]);
    else others.push({ policy, request, answer });
  }

  of(id: string): readonly GivenAnswer[] {
    return this.#byName.get(id) ?? this.#byName.get(seedName(Number.parseInt(id.slice(0, 8), 16) >>> 1)) ?? [];
  }
}

/** An endpoint's request has no key, only the seed that follows from it. */
const seedName = (seed: number) => `seed ${seed}`;

const text = z.string();
const count = z.int().min(0);
const tally = z.object({ promptTokens: count.optional(), responseTokens: count.optional() });
const reasons = ['error', 'overlong', 'timeout', 'too-many-turns', 'invalid-output', 'reward', 'backend'] as const;

const turnSchema = z.object({
  id: z.string().regex(/^[0-9a-f]{16}$/),
  agent: text,
  policy: text,
  policyVersion: count,
  turn: count,
  call: count,
  messages: listOf(z.object({ content: text }), MOST_MESSAGES),
  observation: text.optional(),
  envStep: count.optional(),
  prompt: ids,
  response: ids,
  logprobs: listOfNumbers(Number.isFinite, 'a log-prob'),
  temperature: z.number(),
  finishReason: z.enum(['stop', 'length']),
  text,
  history: z.object({ exact: count, byText: count, byCalls: count, foreign: count }).optional(),
  ignored: listOf(text, MOST_TOOLS).optional(),
  tools: listOf(z.object({ name: text }), MOST_TOOLS).optional(),
  cut: count.optional(),
  prefilled: count.optional(),
  content: text.optional(),
  reasoning: text.optional(),
  toolCalls: listOf(z.object({ id: text, name: text, arguments: text }), MOST_MESSAGES).optional(),
  valid: z.boolean(),
  penalty: z.number(),
  frozen: z.literal(true).optional(),
  judging: z.literal(true).optional(),
  endpoint: tally.optional(),
  stepReward: z.number().optional(),
  duration: z.number().min(0).optional(),
});

/** The form of an episode. Further fields are kept: values are the team's. */
const episodeSchema = z.object({
  task: z.object({ id: text }),
  sample: count,
  turns: z.array(turnSchema),
  score: z.object({
    team: z.number(),
    agents: z.custom(isObject, 'expected rewards by agent'),
    parts: z.custom(isObject, 'expected rewards by part'),
    agentParts: z.custom(isObject, 'expected parts by agent').optional(),
    success: z.number().min(0).max(1).optional(),
    metrics: z.custom(isObject, 'expected numbers by name').optional(),
  }),
  log: listOf(z.object({ name: text }), 1000).optional(),
  refused: z.custom(isObject, 'expected counts by agent').optional(),
  unanswered: z.custom(isObject, 'expected counts by agent').optional(),
  failure: z.object({ reason: z.enum(reasons), message: text, stack: text.optional() }).optional(),
});

/** An episode that the run waits for: its request, and the answers that the run has given for it. */
export interface AwaitedEpisode {
  readonly context: RolloutContext;
  readonly request: PlayRequest;
  readonly answered: AnsweredCalls;
}

/** An episode differs from its request, or from the run's answers. */
class Fault extends Error {}

/**
 * The difference between an episode and its request and answers: its task, its agents, and each token that it sampled.
 * Undefined if there is none. Outcome, rewards and logs are the work of the team's code on the worker: they must have
 * the right form and size, and are believed.
 */
export function faultOf(handedIn: unknown, awaited: AwaitedEpisode): string | undefined {
  try {
    checkTurns(handedIn, awaited.context);
    parseAt(episodeSchema, handedIn);
    checkEpisode(handedIn as Episode, awaited);
    return undefined;
  } catch (error) {
    return messageOf(error).replaceAll(/\n\s*/g, '; ');
  }
}

/** Checks the number of turns, before each of them is read. Turns of judges are not in the limit of calls. */
function checkTurns(handedIn: unknown, { maxTurns }: RolloutContext): void {
  const turns: readonly unknown[] = isObject(handedIn) && Array.isArray(handedIn.turns) ? handedIn.turns : [];
  const ofPlay = turns.filter((turn) => !(isObject(turn) && turn.judging === true)).length;
  if (ofPlay > maxTurns) throw new Fault(`${ofPlay} turns, expected at most ${maxTurns}`);
  if (turns.length > MOST_CALLS) throw new Fault(`${turns.length} turns, expected at most ${MOST_CALLS}`);
}

function checkEpisode(episode: Episode, { context, request, answered }: AwaitedEpisode): void {
  const { agents, maxTurns, maxOutcomeBytes = Number.POSITIVE_INFINITY } = context;
  expectEqual('task.id', episode.task.id, request.task.id);
  expectEqual('sample', episode.sample, request.sample);
  const names = new Set<string | undefined>();
  const last = new Map<string, number>();
  let before = -1;
  for (const turn of episode.turns) {
    const at = `turn ${turn.turn}`;
    const settings = ownValue(agents, turn.agent);
    if (settings === undefined) throw new Fault(`${at}: the team has no agent '${turn.agent}'`);
    const most = maxTurns + (turn.judging === true ? answered.count : 0);
    if (turn.turn <= before || turn.turn >= most || turn.call <= (last.get(turn.agent) ?? -1))
      throw new Fault(`${at}: expected the turns in the order of their calls, at most ${most}`);
    if (names.has(turn.id)) throw new Fault(`${at}: an earlier turn has the id ${turn.id} too`);
    before = turn.turn;
    last.set(turn.agent, turn.call);
    names.add(turn.id);
    checkSettings(at, turn, settings);
    checkAnswer(at, turn, episode.turns, settings, { context, request, answered });
  }
  checkScore(episode, context);
  for (const [name, value] of [
    ['outcome', episode.outcome],
    ...(episode.log ?? []).map(({ name, value }) => [name, value]),
  ])
    if (!isSmall(value, maxOutcomeBytes))
      throw new Fault(`${String(name)} is larger than training.maxOutcomeBytes, ${maxOutcomeBytes}`);
}

function checkSettings(at: string, turn: Turn, settings: AgentSettings): void {
  expectEqual(`${at}: policy`, turn.policy, settings.policy);
  expectEqual(`${at}: frozen`, turn.frozen ?? false, settings.frozen ?? false);
  expectEqual(`${at}: penalty`, turn.penalty, turn.valid ? 0 : settings.invalidPenalty);
  if (turn.judging === true && settings.judges !== true) throw new Fault(`${at}: '${turn.agent}' may not judge`);
  for (const reward of [turn.stepReward, turn.duration])
    if (reward !== undefined) finiteReward(reward, `${at}: the reward`);
}

/** Compares a turn with the answers to its call, or with the turn that it repeats. */
function checkAnswer(
  at: string,
  turn: Turn,
  turns: readonly Turn[],
  settings: AgentSettings,
  { context, request, answered }: AwaitedEpisode,
) {
  const { id = '', agent } = turn;
  const fixed = request.replay?.fixed.find((each) => each.id === id);
  if (fixed !== undefined) {
    if (!isCallName(id, { ...context, calls: context.maxTurns }, request, agent, fixed))
      throw new Fault(`${at}: '${agent}' did not make the call ${id}`);
    for (const field of [...SAMPLED, 'text'] as const) expectEqual(`${at}: ${field}`, turn[field], fixed[field]);
    return;
  }
  const candidates = answered.of(id);
  const named = { seed: context.seed, calls: Math.max(context.maxTurns, answered.count) };
  if (candidates.length === 0) throw new Fault(`${at}: this run has sampled nothing for the call ${id}`);
  const faults = candidates.map((each) => {
    try {
      expectEqual(`${at}: policy`, turn.policy, each.policy);
      const spoken = 'key' in each.request ? each.request : { ...each.request, prompt: [] };
      if (!isCallName(id, named, request, agent, { messages: turn.messages, ...spoken }))
        throw new Fault(`${at}: '${agent}' did not make the call ${id}`);
      checkSampling(at, each.request, settings, request);
      if ('prompt' in each.request) checkTokens(at, turn, each.request, each.answer as Generation, context);
      else checkText(at, turn, turns, each.request, each.answer as Utterance);
      return undefined;
    } catch (error) {
      return error;
    }
  });
  if (!faults.includes(undefined)) throw faults[0];
}

function checkSampling(at: string, spoken: SpeakerRequest, settings: AgentSettings, request: PlayRequest): void {
  const { sampling, evaluationSampling = sampling, policy } = settings;
  const of: Sampling = { ...(request.phase === 'evaluation' ? evaluationSampling : sampling), ...request.sampling };
  for (const field of ['temperature', 'topP', 'topK'] as const)
    expectEqual(`${at}: the request's ${field}`, spoken[field], of[field]);
  if (spoken.maxTokens > of.maxTokens) throw new Fault(`${at}: the request's maxTokens is ${spoken.maxTokens}`);
  if ('prompt' in spoken) expectEqual(`${at}: the request's version`, spoken.version, request.versions?.[policy]);
}

/** The fields of a turn that the sampler decides, with the log-probs. */
const SAMPLED = ['prompt', 'response', 'logprobs', 'finishReason', 'policyVersion', 'temperature'] as const;

function checkTokens(
  at: string,
  turn: Turn,
  spoken: GenerateRequest,
  answer: Generation,
  { policies }: RolloutContext,
) {
  const { tokens: response, logprobs, finishReason, policyVersion } = answer;
  const sampled = {
    response,
    logprobs,
    finishReason,
    policyVersion,
    prompt: spoken.prompt,
    temperature: spoken.temperature,
  };
  for (const field of SAMPLED) expectEqual(`${at}: ${field}`, turn[field], sampled[field]);
  if (turn.endpoint !== undefined) throw new Fault(`${at}: no endpoint speaks for '${turn.agent}'`);
  const speaker = policies[turn.policy];
  if (speaker === undefined || !('tokenizer' in speaker)) return;
  const { tokenizer } = speaker;
  expectEqual(`${at}: the stop tokens`, spoken.stopTokens, tokenizer.stopTokens);
  const opening = turn.prompt.slice(turn.prompt.length - (turn.prefilled ?? 0));
  const written = [...opening, ...withoutStop(response, finishReason, tokenizer)];
  expectEqual(`${at}: text`, turn.text, tokenizer.decode(written));
}

/** @param turns The turns of the episode: the agent's earlier ones have what its server wanted back */
function checkText(at: string, turn: Turn, turns: readonly Turn[], spoken: TextRequest, answer: Utterance): void {
  const { promptTokens, responseTokens, providerData } = answer;
  const utterance = {
    prompt: [],
    response: [],
    logprobs: [],
    policyVersion: 0,
    text: answer.text,
    finishReason: answer.finishReason,
    temperature: spoken.temperature,
  };
  for (const [field, value] of Object.entries(utterance))
    expectEqual(`${at}: ${field}`, turn[field as keyof Turn], value);
  const before = turns.filter(({ agent, turn: nth }) => agent === turn.agent && nth < turn.turn);
  const messages = asAnswered(turn.messages, before);
  expectEqual(`${at}: the messages`, JSON.stringify(messages), JSON.stringify(spoken.messages));
  expectEqual(`${at}: the endpoint's prompt tokens`, turn.endpoint?.promptTokens, promptTokens);
  expectEqual(`${at}: the endpoint's response tokens`, turn.endpoint?.responseTokens, responseTokens);
  expectEqual(`${at}: the endpoint's data`, JSON.stringify(turn.endpoint?.providerData), JSON.stringify(providerData));
}

/**
 * Checks that statistics can hold all rewards, and that they belong to agents of the team. A failed episode has no
 * reward but the cost of its calls.
 */
function checkScore({ score, refused = {}, unanswered = {}, failure, turns }: Episode, context: RolloutContext): void {
  const { team, parts, agentParts = {}, metrics = {} } = score;
  const byAgent = [score.agents, agentParts, refused, unanswered];
  for (const name of byAgent.flatMap((each) => Object.keys(each)))
    if (ownValue(context.agents, name) === undefined) throw new Fault(`score: the team has no agent '${name}'`);
  const named = [parts, score.agents, metrics, refused, unanswered, ...Object.values(agentParts)];
  for (const [name, value] of [['the reward', team] as const, ...named.flatMap((each) => Object.entries(each))])
    finiteReward(numberOf(value), name);
  if (failure === undefined) return;
  const earned = failedScore(turns, context);
  if (team !== earned.team || [score.agents, agentParts].some((each) => Object.keys(each).length > 0))
    throw new Fault(`score: a failed episode earns ${earned.team}, and no reward`);
}

/** A value that may be anything; `finiteReward` refuses what is no number. */
const numberOf = (value: unknown) => (typeof value === 'number' ? value : Number.NaN);

const ownValue = <T>(values: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(values, name) ? values[name] : undefined;

/** @throws Fault unless two values, or all values of two lists, have the same bits */
function expectEqual(what: string, value: unknown, expected: unknown): void {
  if (Array.isArray(value) && Array.isArray(expected)) {
    const at = expected.findIndex((each, i) => !Object.is(each, value[i]));
    if (value.length !== expected.length)
      throw new Fault(`${what} has ${value.length} values, expected ${expected.length}`);
    if (at >= 0) throw new Fault(`${what}[${at}] is ${String(value[at])}, expected ${String(expected[at])}`);
  } else if (!Object.is(value, expected)) throw new Fault(`${what} is ${brief(value)}, expected ${brief(expected)}`);
}

const brief = (value: unknown) => (typeof value === 'string' ? JSON.stringify(value.slice(0, 60)) : String(value));
