/**
 * A retrospective agent (Retroformer, arXiv 2308.02151). The actor is frozen. After a trial with an error the coach,
 * who trains, writes a reflection, and the actor tries again with it. A reflection earns the next trial's score minus
 * the last one's. The actor follows the reflection and knows nothing of the locks; the coach must learn from trials
 * alone how each lock opens.
 *
 * With the reward `outcome` a reflection earns the next trial's score in place of the improvement, as a comparison:
 *
 *     npx drmas ablate examples/retrospect/recipe.ts --vary tasks.train.reward=improvement,outcome --seeds 5
 */
import { agent, assistant, defineRecipe, defineTeam, frozen, tinyDecoder, user } from 'drmas';
import { z } from 'zod';

const wheels = ['red', 'green', 'blue'].map((wheel) => [1, 2, 3, 4].map((n) => `${wheel}${n}`));
const settings = wheels.flat();
const names = ['attic', 'cellar', 'garage', 'larder', 'office', 'porch', 'shed', 'vault'];
/** How each lock is opened, a setting a wheel. */
const locks = new Map(names.map((name, i) => [name, wheels.map((wheel, w) => wheel[(i * (w + 2) + w) % 4] ?? '')]));
const TRIALS = 3;

/** The share of wheels that are right. */
const score = (lock: string, tried: readonly string[]) =>
  (locks.get(lock) ?? []).filter((setting, w) => tried[w] === setting).length / wheels.length;
/** Three settings, one for each wheel. */
const attempt = (text: string) => {
  const tried = text.match(/[a-z]+\d/g) ?? [];
  return tried.length === wheels.length && tried.every((setting, w) => wheels[w]?.includes(setting))
    ? tried
    : undefined;
};
const reflection = (text: string) => settings.find((setting) => setting === text);

export const team = defineTeam({
  name: 'retrospect',
  task: z.object({ lock: z.string(), reward: z.enum(['improvement', 'outcome']) }),
  agents: {
    actor: agent({ system: '<actor>', parse: attempt, sampling: { maxTokens: 4 } }),
    coach: agent({ system: '<coach>', parse: reflection, sampling: { maxTokens: 2 } }),
  },
  async play({ task: { lock }, agents: { actor, coach } }) {
    let trial = await actor(lock);
    const scores = [score(lock, trial.value ?? [])];
    const reflections: number[] = [];
    while (scores.length < TRIALS && scores.at(-1) !== 1) {
      const failed = [user(lock), assistant(trial.text)];
      const advice = await coach([...failed, user('lost')]);
      trial = await actor([...failed, user(advice.text)]);
      reflections.push(advice.turn);
      scores.push(score(lock, trial.value ?? []));
    }
    return { scores, reflections };
  },
  reward: ({ outcome: { scores, reflections }, task: { reward } }) => ({
    team: scores.at(-1) ?? 0,
    agents: { coach: 0 },
    turns: reflections.map((turn, i) => {
      const [before, after] = scores.slice(i) as [number, number];
      return { turn, value: reward === 'improvement' ? after - before : after };
    }),
  }),
  success: ({ outcome: { scores } }) => scores.at(-1) ?? 0,
  metrics: ({ outcome: { scores } }) => ({ first: scores[0], trials: scores.length }),
});

type Data = z.infer<typeof team.task>;

/** All locks occur in training; the evaluation samples new trials of the actor. */
const tasks = ({ reward }: Pick<Data, 'reward'>) => ({
  name: 'locks',
  settings: { reward },
  configure: (changed: unknown) => tasks(changed as Pick<Data, 'reward'>),
  load: async (split: 'train' | 'test') => {
    const at = (index: number) => {
      const lock = names[index % names.length] ?? '';
      return { id: lock, data: { lock, reward } };
    };
    return { name: `locks ${split}`, size: names.length, at };
  },
  trace(random: { pick<T>(from: readonly [T, ...T[]]): T; chance(share: number): boolean }) {
    const pick = (from: readonly string[]) => random.pick(from as [string, ...string[]]);
    const lock = pick(names);
    const tried = wheels.map(pick);
    if (random.chance(0.2)) return { agent: 'actor', messages: [user(lock)], response: tried.join('') };
    const failed = [user(lock), assistant(tried.join(''))];
    const advice = pick(settings);
    if (random.chance(0.3)) return { agent: 'coach', messages: [...failed, user('lost')], response: advice };
    const next = tried.map((setting, w) => (wheels[w]?.includes(advice) ? advice : setting));
    return { agent: 'actor', messages: [...failed, user(advice)], response: next.join('') };
  },
});

const model = tinyDecoder({
  width: 32,
  layers: 2,
  heads: 2,
  feedForward: 80,
  context: 24,
  embeddingDeviation: 0.5,
  tokenizer: {
    type: 'symbols',
    symbols: ['<ask>', '<end>', '<actor>', '<coach>', 'lost', ...settings, ...names],
    stop: '<end>',
    endOfUser: '<ask>',
    endOfAssistant: '<end>',
  },
});

export default defineRecipe({
  team,
  tasks: tasks({ reward: 'improvement' }),
  model,
  assign: { actor: frozen(model), coach: 'coach' },
  policies: { coach: { optimizer: { learningRate: 2e-3 } } },
  warmStart: { steps: 500, batch: 64, learningRate: 4e-3 },
  training: { steps: 60, tasksPerStep: 8, groupSize: 16 },
  evaluation: { every: 20, tasks: 8, samples: 32 },
});
