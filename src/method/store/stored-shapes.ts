/**
 * The shapes of stored events and episodes, as far as readers depend on them. A run may come from others or be damaged,
 * and earlier versions wrote fewer fields. Fields of later versions are kept.
 */
import { isObject } from '@drmas/engine/errors';
import { EVENT_VERSION, faultOf, laterVersion } from '@drmas/engine/events';
import { z } from 'zod';

/** JSON has null for a number that could not be measured. */
const measured = z.number().nullish();
const count = z.number();
const text = z.string();
/** Values by name. Records leave out a key `__proto__`, and what walks over the keys then meets it unchecked. */
const named = <S extends z.ZodType>(value: S) =>
  z
    .custom((names) => !isObject(names) || !Object.hasOwn(names, '__proto__'), 'expected other names than __proto__')
    .pipe(z.record(z.string(), value));
const numbers = named(measured).optional();
const of = <S extends z.ZodRawShape>(shape: S) => z.looseObject(shape);

const tokens = of({ read: measured, written: measured, trained: measured }).optional();
const interval = of({ low: count, high: count }).optional();
const kinds = of({ allRight: measured, allWrong: measured, mixed: measured, penaltyOnly: measured }).optional();

const history = of({ exact: measured, byText: measured, byCalls: measured, foreign: measured }).optional();

const scores = {
  averageAtK: count,
  passAtK: count,
  majorityAtK: count,
  interval: of({ low: count, high: count, level: count }),
  passInterval: interval,
  majorityInterval: interval,
  passAt: numbers,
};

const agentStep = of({
  frozen: z.boolean().optional(),
  turns: count,
  rewardMean: measured,
  rewardStd: measured,
  rewardedTurns: measured,
  parts: numbers,
  invalid: measured,
  inflation: of({ predicted: measured, measured, covariance: measured, ownShare: measured }),
  history,
  calls: of({ share: measured, success: measured, overall: measured, alone: measured }).optional(),
  chains: of({ perEpisode: measured, turns: measured, longest: measured }).optional(),
  health: of({ groupSpread: measured, duplicates: measured, rewardedInvalid: measured, groups: kinds }).optional(),
  maxAbsAdvantage: measured,
  gradientNorm: measured,
  agreement: measured,
  loss: measured,
  entropy: measured,
  sampledEntropy: measured,
  clipFraction: measured,
  kl: measured,
  maxRatioDeviation: measured,
  responseTokens: measured,
  cut: measured,
  tokens,
  cost: measured,
});

const agentEvaluation = of({
  turns: measured,
  callsPerEpisode: measured,
  invalid: measured,
  responseTokens: measured,
  reward: measured,
  rewardInterval: interval,
  parts: numbers,
  tokens,
  cost: measured,
});

const spike = of({
  step: count,
  policy: text,
  agent: text.optional(),
  gradientNorm: measured,
  median: measured,
  episodes: z.array(text),
});

const stamped = of({ version: measured, time: text.optional() });

const hardware = { kernels: text, isa: text };

const bodies: Readonly<Record<string, z.ZodType>> = {
  preparing: of({ message: text }),
  'run.started': of({
    recipe: text.optional(),
    seed: count.optional(),
    versions: of({}).optional(),
    evaluated: measured,
    hardware: of({ ...hardware, cores: measured }).optional(),
    backends: named(of(hardware)).optional(),
    data: z.array(of({ name: text, commit: text.optional(), files: named(text) })).optional(),
    learning: named(
      of({ clipNorm: measured, entropyCoefficient: measured, weightDecay: measured, agents: z.array(text).optional() }),
    ).optional(),
    parameters: named(count).optional(),
  }),
  warmup: of({
    policy: text,
    step: count,
    steps: count,
    loss: measured,
    heldOutLoss: measured,
    tokens: measured,
    seconds: measured,
  }),
  step: of({
    step: count,
    seconds: measured,
    phaseSeconds: of({ rollout: measured, advantage: measured, update: measured }).optional(),
    tokens: of({ sampled: measured, trained: measured }).optional(),
    cost: measured,
    reward: of({ mean: measured, std: measured }).optional(),
    episodes: of({ played: count, failed: count }).optional(),
    success: measured,
    parts: numbers,
    metrics: numbers,
    agents: named(agentStep),
    policies: named(of({ gradientNorm: measured, learningRate: measured })).optional(),
    groups: kinds,
    levels: named(of({ tasks: count, success: measured })).optional(),
    filter: of({ played: count, kept: count }).optional(),
  }),
  evaluation: of({
    ...z.object(scores).partial().shape,
    step: count,
    tasks: count,
    split: text,
    samples: count,
    unscored: count.optional(),
    episodes: count.optional(),
    reward: measured,
    rewardInterval: interval,
    parts: numbers,
    metrics: numbers,
    agents: named(agentEvaluation),
    slices: named(named(of({ tasks: count, ...scores }))).optional(),
    cost: measured,
    seconds: measured,
  }),
  spike,
  skipped: spike,
  best: of({ step: count, by: text, score: measured }),
  stop: of({ step: count, rule: text, message: text }),
  checkpoint: of({ step: count }),
  'episode.failed': of({ step: count, task: text, reason: text, message: text, stack: text.optional() }),
  warning: of({ message: text, code: text.optional(), step: measured, agent: text.optional() }),
  'run.finished': of({ reason: text.optional(), steps: measured, seconds: measured }),
};

/** The fault of a stored event, with the field; undefined if there is none. Types of later versions have any fields. */
export function eventFault(event: Readonly<Record<string, unknown>>): string | undefined {
  const body = typeof event.type === 'string' && Object.hasOwn(bodies, event.type) ? bodies[event.type] : undefined;
  return laterVersion(event, EVENT_VERSION) ?? faultOf(stamped, event) ?? (body && faultOf(body, event));
}

const message = of({
  role: text.optional(),
  content: text,
  toolCalls: z.array(of({ name: text, arguments: z.unknown() })).optional(),
});

/** Ids and log-probs are not looked at one by one: an episode may have a million. */
const perToken = z
  .unknown()
  .refine((value) => typeof (value ?? 0) === 'number' || Array.isArray(value), 'expected a number, or one a token');

const turn = of({
  id: text.optional(),
  agent: text,
  policyVersion: measured,
  turn: measured,
  call: measured,
  temperature: measured,
  history,
  messages: z.array(message).optional(),
  prompt: z.array(z.unknown()).optional(),
  response: z.array(z.unknown()).optional(),
  logprobs: z.array(z.unknown()).optional(),
  text: text.optional(),
  content: text.optional(),
  reasoning: text.optional(),
  toolCalls: z.array(of({ name: text, arguments: z.unknown() })).optional(),
  tools: z.array(of({ name: text })).optional(),
  endpoint: of({ promptTokens: measured, responseTokens: measured }).optional(),
  envStep: measured,
  penalty: measured,
  stepReward: measured,
  reward: measured,
  advantage: perToken.optional(),
  ratio: perToken.optional(),
  clipped: z.array(z.unknown()).optional(),
});

/** Early versions wrote no messages and no parts. */
const episode = of({
  task: of({}),
  sample: measured,
  score: of({
    team: measured,
    agents: numbers,
    parts: numbers,
    agentParts: named(named(measured)).optional(),
    success: measured,
    metrics: numbers,
  }),
  failure: of({ reason: text, message: text }).optional(),
  log: z.array(of({ name: text })).optional(),
  turns: z.array(turn),
});

/** The fault of a stored episode, with the field; undefined if there is none. */
export const episodeFault = (row: unknown): string | undefined =>
  isObject(row) ? faultOf(episode, row) : 'expected an episode as one JSON object';
