/** A small run on disk, made up event by event, for tests of readers of a run's files. */
import type { Episode } from '@drmas/engine/nouns';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { evaluation, started, step, warmup } from '../fixtures/run-events.js';

/** A text that a hostile model or task might write. */
export const hostile = `</script><script>document.title='owned'</script><img src=x onerror="document.title='owned'">\u0000&amp;"'`;

export function madeUpEpisode(task: string, sample: number, reward: number, text: string): Episode {
  const turn = (agent: string, turn: number, valid: boolean) => ({
    agent,
    policy: agent,
    policyVersion: 1,
    turn,
    call: 0,
    messages: [{ role: 'user' as const, content: `what is ${task}?` }],
    prompt: [1, 2],
    response: [3, 4, 5],
    logprobs: [-1, -1, -1],
    temperature: 1,
    finishReason: 'stop' as const,
    text,
    value: valid ? text : undefined,
    valid,
    penalty: valid ? 0 : 0.1,
  });
  return {
    task: { id: task, data: { question: `what is ${task}?`, answer: '42' } },
    sample,
    outcome: { answer: text },
    score: { team: reward, agents: {}, parts: {} },
    turns: [turn('solver', 0, true), turn('verifier', 1, reward > 0)],
  };
}

/** A run without events. */
export const prepareRun = (
  path: string,
  { seed = 1, overrides = [] }: { readonly seed?: number; readonly overrides?: readonly string[] } = {},
) =>
  RunDirectory.create(path, {
    version: 1,
    recipe: { source: 'math', overrides: [...overrides, `seed=${seed}`], codeHash: 'abc' },
    resolved: { name: 'math', team: 'solver-verifier', seed, advantage: { type: 'drmas' }, loss: { type: 'ppo-clip' } },
    acceptedChanges: [],
  });

/** Two steps of two tasks, with a spike at the second step and evaluations around them. `text` gives the texts. */
export async function recordRun(
  path: string,
  options: { readonly text?: string } & Parameters<typeof prepareRun>[1] = {},
) {
  const { text = 'an answer', seed = 1, overrides = [] } = options;
  const run = await prepareRun(path, { seed, overrides });
  const tasks = [`one ${text}`, 'two'];
  const group = () =>
    tasks.flatMap((task) => [1, 0].map((reward, i) => madeUpEpisode(task, i, reward, `${text} ${i}`)));
  run.emit({ ...started, seed });
  run.emit(warmup(100));
  run.emit(evaluation(0, 0.5));
  await run.writeEvaluationEpisodes(0, group());
  for (const number of [1, 2]) {
    run.emit(step(number));
    const advantages = group().map(({ score }) => (score.team > 0 ? [0.7, 0.7] : [-0.7, [-0.5, -1, -1.5]]));
    await run.writeStepEpisodes(number, group(), advantages);
  }
  run.emit({
    type: 'spike',
    step: 2,
    policy: 'verifier',
    agent: 'verifier',
    gradientNorm: 12,
    median: 0.9,
    action: 'clip',
    episodes: [`one ${text}/1`],
  });
  run.emit({ type: 'warning', code: 'test', message: text });
  run.emit(evaluation(2, 0.75));
  run.emit({ type: 'run.finished', reason: 'completed', steps: 2, seconds: 12 });
  return run;
}
