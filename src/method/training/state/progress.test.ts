import { messageOf } from '@drmas/engine/errors';
import type { EarlyStop, EvaluationEvent, EventBody, Step } from '@drmas/engine/events';
import type { Turn } from '@drmas/engine/nouns';
import { expect, it } from 'vitest';
import { evaluation as loggedEvaluation, step as loggedStep, stamped } from '../../../../test/fixtures/run-events.js';
import {
  createRun,
  eventsOf,
  filesOf,
  resumedTiny,
  temporaryRoot,
  tinyRecipe,
  trainTiny,
  watchedRun,
} from '../../../../test/support/tiny-run.js';
import { checkpointOf } from '../../../runs/run/request/checkpoint-names.js';
import { requestContinuation } from '../../../runs/run/request/continuation.js';
import { RunDirectory } from '../../store/run-directory.js';
import { firstProgress, keptProgress, keptSchema, loadProgress, type Progress } from './progress.js';
import { endsAfter, StopRules } from './stop-rules.js';

const root = temporaryRoot();
const run = watchedRun(tinyRecipe());
const watch = { norms: { solver: [1, 2] }, dropped: { solver: 1 }, symptoms: {}, silent: { solver: 3 } };

it('is stored under the names of all earlier versions, without empty parts', () => {
  const progress = firstProgress(run);
  const empty = { norms: {}, dropped: {}, symptoms: {}, silent: {} };
  const under = expect.objectContaining({ 'stops.waiting': expect.any(String) });
  expect(keptProgress(progress)).toEqual({ step: 0, evaluated: -1, watch: empty, kl: {}, under });
  progress.estimator = { mean: 0.5 };
  progress.predictions = { easy: 0.9 };
  const full = { ...progress, warmStart: 'abc' };
  const names = ['step', 'evaluated', 'watch', 'kl', 'estimator', 'predictions', 'under', 'warmStart'];
  expect(Object.keys(keptProgress(full))).toEqual(names);
});

it('is restored unchanged', () => {
  const kl = { solver: 0.25 };
  const made = { solver: 7 };
  const { under } = keptProgress(firstProgress(run));
  const kept = { step: 7, evaluated: 5, watch, kl, made, estimator: { mean: 2 }, predictions: { a: 1 }, under };
  const parsed = keptSchema.parse(JSON.parse(JSON.stringify(kept)));
  const loaded = loadProgress(run, parsed);
  expect(loaded.kl.of({ name: 'solver' })).toBe(0.25);
  expect(JSON.parse(JSON.stringify(keptProgress(loaded)))).toEqual(kept);
});

it('has the initial value of each part that an older checkpoint lacks', () => {
  const { norms, dropped } = watch;
  const parsed = keptSchema.parse({ step: 1, evaluated: 0, watch: { norms, dropped } });
  const loaded = loadProgress(run, parsed);
  expect([loaded.estimator, loaded.predictions, loaded.warmStart]).toEqual([{}, {}, undefined]);
  expect(() => keptSchema.parse({ step: 1, evaluated: 0 })).toThrow();
});

const scored = { step: 2, score: 0.5 };
const stops = { by: 'averageAtK', best: scored, waiting: { ...scored, evaluations: 1 }, gain: 0, low: 2, floor: 0.1 };
const rules = ['training.stopWhen={"score":1,"patience":3,"rewardFloor":{"below":0.1}}', 'training.checkpointEvery=1'];
const symptoms = { solver: { first: [{ entropy: 1 }], last: [], shown: [] } };
const stored = {
  watch: { norms: { solver: [1] }, dropped: {}, symptoms, silent: {} },
  stops,
  estimator: { a: 2 },
  predictions: { 1: 0.9 },
};

/** The parts of a run's progress that begin anew if it resumes with the second settings after the first ones. */
function begunAnew(before: readonly string[], after: readonly string[]): string[] {
  const under = (settings: readonly string[]) => watchedRun(tinyRecipe({}, [...rules, ...settings]));
  const { under: madeUnder } = keptProgress(firstProgress(under(before)));
  const kept = (inCheckpoint: object, settings: readonly string[]) => {
    const written = keptSchema.parse({ step: 1, evaluated: 0, kl: {}, ...stored, ...inCheckpoint });
    const { watch, stops, estimator, predictions } = keptProgress(loadProgress(under(settings), written));
    const { norms, symptoms } = watch as typeof stored.watch;
    const { best, waiting, low } = stops ?? {};
    return Object.entries({ norms, symptoms, best, waiting, low, estimator, predictions });
  };
  const isKept = (value: unknown) =>
    (value !== undefined && Object.keys(Object(value)).length > 0) || typeof value === 'number';
  const lost = (entries: [string, unknown][]) => entries.flatMap(([name, value]) => (isKept(value) ? [] : [name]));
  expect(lost(kept({ under: madeUnder }, before))).toEqual([]);
  expect(lost(kept({}, after))).toEqual([]); // of a version that did not say
  return lost(kept({ under: madeUnder }, after));
}

it.each<[string, string, string, ...string[]]>([
  ['of another field', 'training.curriculum={"by":"level"}', 'training.curriculum={"by":"length"}', 'predictions'],
  ['of another estimator', 'advantage.type=ema', 'advantage.type=grpo', 'norms', 'estimator'],
  ['of another choice', 'advantage.epsilon=0.1', 'advantage.epsilon=0.2', 'norms', 'estimator'],
  ['of another loss', 'loss.aggregate=chain-mean', 'loss.aggregate=token-mean', 'norms'],
  [
    'at another temperature',
    'agents.solver.sampling.temperature=1',
    'agents.solver.sampling.temperature=0.5',
    ...['symptoms', 'best', 'waiting'],
  ],
  ['of other rewards', 'agents.solver.callCost=0', 'agents.solver.callCost=0.1', 'symptoms', 'low', 'estimator'],
  ['of other evaluations', 'evaluation.tasks=3', 'evaluation.tasks=2', 'best', 'waiting'],
  ['of more samples, by their mean', 'evaluation.samples=2', 'evaluation.samples=4'],
  ['of a step that has no checkpoint', 'training.keepBest=false', 'training.keepBest=true', 'best'],
])('begins the parts anew that are %s', (_, before, after, ...parts) => {
  expect(begunAnew([before], [after])).toEqual(parts);
});

it('compares no pass@k of other numbers of samples', () => {
  const by = (samples: number) => ['training.bestBy=passAtK', `evaluation.samples=${samples}`];
  const passed = { ...stops, by: 'passAtK' };
  const progress = firstProgress(watchedRun(tinyRecipe({}, [...rules, ...by(8)])));
  const kept = keptSchema.parse({ ...keptProgress(progress), stops: passed });
  const bestAt = (samples: number) =>
    loadProgress(watchedRun(tinyRecipe({}, [...rules, ...by(samples)])), kept).stops.state?.best;
  expect([bestAt(8), bestAt(2)]).toEqual([scored, undefined]);
});

it('lets a controller begin with the coefficient of a policy that the recipe now gives another one', () => {
  const kl = (name: string, coefficient: number) =>
    `policies.${name}.kl={"coefficient":${coefficient},"controller":{"type":"adaptive","target":0.1,"horizon":100}}`;
  const withKl = (solver: number) => watchedRun(tinyRecipe({}, [kl('solver', solver), kl('verifier', 0.5)]));
  const of = (progress: Progress, name: string) => {
    const settings = withKl(0.2).trained.find((each) => each.name === name)?.settings?.kl;
    return progress.kl.of({ name, ...(settings && { kl: settings }) });
  };
  const progress = loadProgress(withKl(0.1), { kl: { solver: 0.07, verifier: 0.6 } });
  const kept = keptSchema.parse(JSON.parse(JSON.stringify(keptProgress(progress))));
  expect(of(loadProgress(withKl(0.1), kept), 'solver')).toBe(0.07);
  const changed = loadProgress(withKl(0.2), kept);
  expect([of(changed, 'solver'), of(changed, 'verifier')]).toEqual([0.2, 0.6]);
});

// The rules that end a run early.

const rulesOf = (training: object, state?: ConstructorParameters<typeof StopRules>[1]) =>
  new StopRules({ steps: 100, ...training }, state);

const evaluation = (step: number, averageAtK: number, more: object = {}) =>
  ({ type: 'evaluation', step, averageAtK, passAtK: 1, reward: -averageAtK, agents: {}, ...more }) as EvaluationEvent;

const step = (at: number, mean: number, more: object = {}) =>
  ({ step: at, reward: { mean, std: 0 }, success: mean, agents: {}, ...more }) as Step;

const typesAfter = (rules: StopRules, scores: readonly number[]) =>
  scores.map((score, at) => rules.afterEvaluation(evaluation(at, score)).map(({ type }) => type));

it('name the best evaluation, the first of equal ones, also if it is the first', () => {
  const rules = rulesOf({ keepBest: true });
  expect(typesAfter(rules, [0.5, 0.4, 0.5, 0.7, 0.6])).toEqual([['best'], [], [], ['best'], []]);
  expect(rules.bestStep).toBe(3);
  expect(rulesOf({ keepBest: true, bestBy: 'reward' }, rules.state).bestStep).toBeUndefined();
  const byReward = rulesOf({ keepBest: true, bestBy: 'reward' });
  expect(typesAfter(byReward, [0.5, 0.4])).toEqual([['best'], ['best']]);
});

it('end a run once, at a score or without a better score for a while', () => {
  const score = rulesOf({ stopWhen: { score: 0.7 } });
  expect(typesAfter(score, [0.5, 0.69, 0.7, 0.2])).toEqual([[], [], ['stop'], []]);
  expect(score.reason).toMatchObject({
    rule: 'score',
    message: expect.stringContaining('averageAtK of step 2 is 0.7'),
  });
  const patience = rulesOf({ stopWhen: { patience: 2 } });
  expect(typesAfter(patience, [0.5, 0.5, 0.6, 0.6, 0.6])).toEqual([[], [], [], [], ['stop']]);
  expect(patience.reason?.message).toMatch(/2 in a row \(training\.stopWhen\.patience\)$/);
  // Rewards that stay below 1 are no success, so that no evaluation is better than another.
  const graded = rulesOf({ stopWhen: { patience: 2 } });
  expect(typesAfter(graded, [0, 0, 0])).toEqual([[], [], ['stop']]);
  expect(graded.reason?.message).toMatch(
    /No episode succeeded after step 0: .*a reward of at least 1\. training\.bestBy/,
  );
  const byReward = rulesOf({ bestBy: 'reward', stopWhen: { patience: 2 } });
  expect(typesAfter(byReward, [0, 0, 0])).toEqual([[], [], ['stop']]);
  expect(byReward.reason?.message).toMatch(/patience\)$/);
  const gain = rulesOf({ stopWhen: { patience: 2, minimumGain: 0.15 } });
  expect(typesAfter(gain, [0.5, 0.6, 0.7, 0.7, 0.7])).toEqual([[], [], [], [], ['stop']]);
  const lost = rulesOf({ keepBest: true, stopWhen: { patience: 1 } });
  expect(typesAfter(lost, [0.5, Number.NaN])).toEqual([['best'], ['stop']]);
});

it('leave out an evaluation of which no episode has a score, because the judge was away', () => {
  const away = evaluation(1, 0, { reward: 0, unscored: 4, episodes: 4 });
  const best = rulesOf({ keepBest: true, bestBy: 'reward' });
  const typesOf = (rules: StopRules, ...all: EvaluationEvent[]) =>
    all.map((each) => rules.afterEvaluation(each).map(({ type }) => type));
  // The reward of these evaluations is minus their score: a 0 would be the best.
  expect(typesOf(best, evaluation(0, 0.5), away, evaluation(2, 0.4))).toEqual([['best'], [], ['best']]);
  const patient = rulesOf({ stopWhen: { patience: 2 } });
  expect(typesOf(patient, evaluation(0, 0.5), away, away, away, evaluation(4, 0.4))).toEqual([[], [], [], [], []]);
  const some = rulesOf({ keepBest: true });
  expect(typesOf(some, evaluation(0, 0.5, { unscored: 3, episodes: 4 }))).toEqual([['best']]);
});

it('end a run at a low reward in several steps in a row, and at a budget', () => {
  const floor = rulesOf({ stopWhen: { rewardFloor: { below: 0.1, steps: 2 } } });
  const rewards = [0, 0.1, 0.05, 0];
  expect(rewards.map((mean, at) => floor.afterStep(step(at + 1, mean), [])?.rule)).toEqual([
    ...[undefined, undefined, undefined],
    'rewardFloor',
  ]);
  // A step whose every reward failed has neither a success nor a reward: it is no low one, and ends no row of them.
  const away = rulesOf({ stopWhen: { rewardFloor: { below: 0.1, steps: 2 } } });
  const unjudged = step(2, 0, { success: undefined, reward: undefined });
  expect([step(1, 0), unjudged, unjudged, step(4, 0)].map((each) => away.afterStep(each, [])?.rule)).toEqual([
    ...[undefined, undefined, undefined],
    'rewardFloor',
  ]);
  const agents = { solver: { tokens: { read: 30, written: 10, trained: 1000 } } };
  // The turns of a step are counted themselves: its event has no agent that was called in failed episodes alone.
  const turns = [{ prompt: Array(30).fill(1), response: Array(10).fill(1) }] as unknown as Turn[];
  const tokens = rulesOf({ stopWhen: { tokens: 80, cost: 10 } });
  expect(tokens.afterEvaluation(evaluation(0, 0, { agents, cost: 4 }))).toEqual([]);
  expect(tokens.afterStep(step(1, 0, { cost: 5 }), turns)?.rule).toBe('tokens');
  const cost = rulesOf({ stopWhen: { cost: 9 } });
  expect(cost.afterEvaluation(evaluation(0, 0, { agents, cost: 4 }))).toEqual([]);
  expect(cost.afterStep(step(1, 0, { agents, cost: 5 }), [])?.rule).toBe('cost');
  const atTheEnd = rulesOf({ steps: 1, stopWhen: { cost: 1 } });
  expect(atTheEnd.afterStep(step(1, 0, { cost: 5 }), [])).toBeUndefined();
});

it('count anew with another floor or another gain than the checkpoint has', () => {
  const low = rulesOf({ stopWhen: { rewardFloor: { below: 0.5, steps: 3 } } });
  for (const at of [1, 2]) low.afterStep(step(at, 0.3), []);
  const floored = (state: StopRules['state'], below?: number) => {
    const kept = JSON.parse(JSON.stringify(state));
    return rulesOf(below === undefined ? {} : { stopWhen: { rewardFloor: { below, steps: 3 } } }, kept);
  };
  const third = (rules: StopRules) => rules.afterStep(step(3, 0.05), [])?.rule;
  expect(third(floored(low.state, 0.5))).toBe('rewardFloor');
  expect(third(floored(low.state, 0.1))).toBeUndefined(); // 0.3 was not below 0.1
  expect(third(floored(floored(low.state).state, 0.5))).toBeUndefined(); // steps without a floor were not counted
  const { floor: _, ...earlier } = low.state ?? {};
  expect(third(floored(earlier, 0.5))).toBe('rewardFloor'); // of a version that did not say

  const patient = rulesOf({ stopWhen: { patience: 2, minimumGain: 0.2 } });
  typesAfter(patient, [0.5, 0.6]);
  const resumed = (stopWhen: object) => rulesOf({ stopWhen }, JSON.parse(JSON.stringify(patient.state)));
  const next = (rules: StopRules) => typesAfter(rules, [0.55])[0];
  expect(next(resumed({ patience: 2, minimumGain: 0.2 }))).toEqual(['stop']);
  expect(next(resumed({ patience: 2 }))).toEqual([]); // 0.6 was better than 0.5
});

it('count tokens and cost from the beginning, also for a run that resumes with its first limit', () => {
  const agents = { solver: { tokens: { read: 30, written: 10, trained: 0 } } };
  const free = rulesOf({});
  free.afterEvaluation(evaluation(0, 0, { agents, cost: 4 }));
  free.afterStep(step(1, 0, { cost: 5 }), [{ prompt: [1, 1], response: [1] }] as unknown as Turn[]);
  const resumed = (stopWhen: object) => rulesOf({ stopWhen }, JSON.parse(JSON.stringify(free.state)));
  expect(resumed({ tokens: 44 }).reason).toBeUndefined();
  expect(resumed({ tokens: 43 }).reason?.rule).toBe('tokens');
  expect(resumed({ cost: 9 }).reason?.rule).toBe('cost');
});

it('count wall-clock minutes over interruptions, without the time in between', () => {
  let now = 1000;
  const clock = { seconds: () => now, now: () => new Date(0) };
  const before = rulesOf({ stopWhen: { minutes: 2 } });
  before.start(clock);
  now += 70;
  expect(before.afterStep(step(1, 0), [])).toBeUndefined();
  now += 5000; // interrupted
  const after = rulesOf({ stopWhen: { minutes: 2 } }, JSON.parse(JSON.stringify(before.state)));
  after.start(clock);
  now += 49;
  expect(after.afterStep(step(2, 0), [])).toBeUndefined();
  expect(endsAfter({ steps: 3 }, { step: 2, stops: after })).toBe(false);
  now += 1;
  expect(after.afterStep(step(3, 0), [])).toMatchObject({ type: 'stop', step: 3, rule: 'minutes' });
  expect(endsAfter({ steps: 100 }, { step: 3, stops: after })).toBe(true);
});

it('take the minutes before a resumption from the log, if the limit is new', () => {
  const log = [
    stamped({ ...loggedStep(1), seconds: 70 }),
    stamped({ ...loggedEvaluation(1, 0.5), seconds: 20 }),
    stamped({ ...loggedStep(2), seconds: 40 }),
  ];
  const resumed = (stopWhen: object | undefined, state: object, events = log) => {
    const rules = rulesOf({ stopWhen }, state);
    return { stop: rules.resume(2, events), rules };
  };
  const reached = resumed({ minutes: 2 }, {});
  expect(reached.stop).toMatchObject({ type: 'stop', step: 2, rule: 'minutes' });
  expect(resumed({ minutes: 2 }, {}, [...log, stamped(reached.stop as EarlyStop)]).stop).toBeUndefined();
  expect(resumed({ minutes: 2.2 }, {}).rules.state?.seconds).toBe(130);
  expect(resumed({ minutes: 2.2 }, { seconds: 131 }).rules.state?.seconds).toBe(131);
  // Minutes that a run without the limit did not count on are not the minutes so far.
  expect(resumed(undefined, { seconds: 10 }).rules.state).toBeUndefined();
  expect(resumed({ tokens: 7 }, { tokens: 8 }).stop?.rule).toBe('tokens');
});

it('name the rule that ended a run, and none after which it went on', async () => {
  const refusal = async (...after: EventBody[]) => {
    const ended = await createRun(root, tinyRecipe());
    const stop = { type: 'stop', step: 2, rule: 'patience', message: '' } as const;
    const finished = { type: 'run.finished', reason: 'completed', steps: 3, seconds: 1 } as const;
    for (const event of [loggedStep(2), stop, ...after, finished]) ended.emit(event);
    return requestContinuation(ended).catch(messageOf);
  };
  expect(await refusal()).toMatch(/is complete.*patience ended it at step 2; to train on/);
  expect(await refusal(loggedStep(3))).toMatch(/is complete: there is nothing to resume$/);
});

const settings = ['training.keepBest=true', 'training.keepCheckpoints=1', 'evaluation.every=1'];
const early = [...settings, 'training.steps=30', 'training.stopWhen.patience=3', 'training.stopWhen.minutes=60'];

it('keep the best checkpoint, which evaluations and exports can name', async () => {
  const trained = await trainTiny(root, tinyRecipe({}, [...settings, 'training.bestBy=reward']));
  const events = await trained.events();
  const scores = events.flatMap((event) => (event.type === 'evaluation' ? [event.reward ?? 0] : []));
  const best = scores.indexOf(Math.max(...scores));
  expect(events.findLast(({ type }) => type === 'best')).toMatchObject({
    step: best,
    by: 'reward',
    score: scores[best],
  });
  const kept = (await trained.checkpoints()).map((checkpoint) => checkpoint.step);
  expect(kept).toEqual([...new Set([best, 4])]);
  expect(await checkpointOf(trained, 'best', 'test')).toMatchObject({ step: best });
  const none = await createRun(root, tinyRecipe());
  await expect(checkpointOf(none, 'best', 'test')).rejects.toThrow(/none is the best; it has none.*keepBest/);
});

it('end a whole run; interrupted and resumed, it decides the same and writes the same files', {
  tags: 'verify',
}, async () => {
  const recipe = tinyRecipe({}, early.slice(0, -1));
  const whole = await trainTiny(root, recipe);
  const events = await eventsOf(whole);
  const stop = events.find(({ type }) => type === 'stop');
  const last = stop?.type === 'stop' ? stop.step : 0;
  expect(last).toBeLessThan(30);
  expect(events.slice(-3)).toMatchObject([
    { type: 'stop', rule: 'patience', step: last },
    { type: 'checkpoint', step: last },
    { type: 'run.finished', reason: 'completed', steps: last },
  ]);
  const best = (await checkpointOf(whole, 'best', 'test')).step;
  const resumed = await resumedTiny(root, recipe, best);
  expect(await filesOf(resumed)).toEqual(await filesOf(whole));
  expect((await eventsOf(resumed)).filter(({ type }) => type !== 'run.finished')).toEqual(
    events.filter(({ type }) => type !== 'run.finished'),
  );
  await expect(requestContinuation(await RunDirectory.open(whole.path))).rejects.toThrow(/patience ended it at step/);
});
