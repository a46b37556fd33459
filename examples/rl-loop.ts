/**
 * A training loop that you own: GRPO (Shao et al. 2024) on the engine of drmas, without a team, a recipe or a run. Copy
 * this file and change any line.
 *
 *   npx tsx examples/rl-loop.ts                  # about 10 seconds on two cores; Ctrl-C ends it
 *   npx tsx examples/rl-loop.ts 40 models/sort   # 40 steps, then saves the model
 *
 * The task: write five different digits in ascending order. A small decoder starts from random weights. A short
 * supervised phase shows it the format alone: the same digits, in a random order. From then on it learns from rewards:
 * it writes 16 answers to each of 16 prompts, and every answer is judged by the share of digits in the right place.
 */
import { openModel, RandomStream, type Sample, tinyDecoder, trainingSample } from 'drmas/engine';

const [steps = '120', directory] = process.argv.slice(2);
const seed = 1;
const digits = 5;
const supervised = { steps: 120, batch: 64, learningRate: 5e-3 };
const reinforcement = { steps: Number(steps), prompts: 16, groupSize: 16, learningRate: 2e-3 };

// 1. The model: a vocabulary of twelve symbols, two layers, 56,000 weights. With `checkpoint('Qwen/Qwen2.5-0.5B')`, or
// `lora(checkpoint(...), { rank: 16 })`, in its place the rest of the file stays as it is.
await using model = await openModel(
  tinyDecoder({
    width: 48,
    layers: 2,
    heads: 3,
    feedForward: 128,
    context: 16,
    tokenizer: {
      type: 'symbols',
      symbols: [...'0123456789', '>', '<end>'],
      stop: '<end>',
      endOfUser: '>',
      endOfAssistant: '<end>',
    },
  }),
  { seed, onProgress: console.error },
);
const { hardware } = model;
console.log(`${model.parameters} parameters, ${hardware.kernels} kernels, ${hardware.threads} threads`);

// 2. The task and its reward. A task is a function of its key, so one seed gives one run.
interface Task {
  readonly prompt: string;
  readonly answer: string;
}

function shuffled(items: readonly string[], random: RandomStream): string[] {
  const order = items.map((item) => ({ item, at: random.uniform() }));
  return order.sort((a, b) => a.at - b.at).map(({ item }) => item);
}

function taskOf(...key: readonly (string | number)[]): Task {
  const chosen = shuffled([...'0123456789'], new RandomStream(seed, ...key)).slice(0, digits);
  return { prompt: `${chosen.join('')}>`, answer: chosen.sort().join('') };
}

/** 1 for the right answer, a part of it for some digits in the right place; a wrong length costs 0.5. */
function rewardOf(text: string, { answer }: Task): number {
  const right = [...answer].filter((digit, i) => text[i] === digit).length;
  return right / digits - (text.length === digits ? 0 : 0.5);
}

const mean = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

/** GRPO: rewards of one group minus their mean, over their standard deviation; 0 if all rewards are equal. */
function advantagesOf(rewards: readonly number[]): number[] {
  const center = mean(rewards);
  const spread = Math.sqrt(rewards.reduce((sum, reward) => sum + (reward - center) ** 2, 0) / (rewards.length - 1));
  return rewards.map((reward) => (spread < 1e-6 ? 0 : (reward - center) / spread));
}

// 3. The supervised phase: cross-entropy on demonstrations.
for (let step = 1; step <= supervised.steps; step++) {
  const demonstrations = Array.from({ length: supervised.batch }, (_, i) => {
    const { prompt, answer } = taskOf('demonstration', step, i);
    const response = shuffled([...answer], new RandomStream(seed, 'order', step, i)).join('');
    return model.demonstration(prompt, response);
  });
  const { loss } = await model.forwardBackward(demonstrations, { loss: { type: 'cross-entropy' } });
  await model.optimStep({ learningRate: supervised.learningRate * Math.min(1, step / 10) });
  if (step % 40 === 0) console.log(`supervised step ${step}: loss ${loss.toFixed(3)}`);
}
await model.resetOptimizer();

// 4. The loop: play, judge, compare within groups, update. `generate` samples from the newest weights.
for (let step = 1; step <= reinforcement.steps; step++) {
  const tasks = Array.from({ length: reinforcement.prompts }, (_, i) => taskOf('task', step, i));
  const prompts = tasks.map(({ prompt }) => prompt);
  const groups = await model.generate({ prompts, n: reinforcement.groupSize, maxTokens: digits + 2 });

  const samples: Sample[] = [];
  const rewards: number[] = [];
  for (const [g, task] of tasks.entries()) {
    const group = groups[g] ?? [];
    const judged = group.map(({ text }) => rewardOf(text, task));
    const advantages = advantagesOf(judged);
    for (const [i, completion] of group.entries()) samples.push(trainingSample(completion, advantages[i] ?? 0));
    rewards.push(...judged);
  }

  const { metrics } = await model.forwardBackward(samples, { loss: { type: 'ppo-clip', clip: 0.2 } });
  const update = await model.optimStep({ learningRate: reinforcement.learningRate, clipNorm: 1 });
  if (!update.applied) console.log(`step ${step}: no update, the gradient is ${update.why}`);
  const solved = rewards.filter((reward) => reward === 1).length / rewards.length;
  console.log(
    `step ${step}: reward ${mean(rewards).toFixed(3)}, solved ${(100 * solved).toFixed(1)} %, ` +
      `entropy ${metrics.entropy?.toFixed(3) ?? '-'}, gradient ${update.norm?.toFixed(2)}`,
  );
}

// 5. A look at the result, and a directory that `transformers` and `loadPolicy` read.
const { prompt } = taskOf('test');
console.log(prompt, (await model.generate({ prompt, maxTokens: digits + 2, temperature: 0 })).text);
if (directory !== undefined) await model.save(directory);
