/**
 * Scorers of autoevals, Mastra, evalite and vitest-evals as they are on npm are parts of a reward, and the reward of a
 * team is a scorer in their runners and in the one of Braintrust.
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createScorer, notScorable, runEvals } from '@mastra/core/evals';
import { createStep, createWorkflow } from '@mastra/core/workflows';
import {
  createContentSimilarityScorer,
  createKeywordCoverageScorer,
  createToolCallAccuracyScorerCode,
  createTrajectoryAccuracyScorerCode,
} from '@mastra/evals/scorers/prebuilt';
import { Evaluators, ExactMatch, Factuality, Levenshtein, NumericDiff } from 'autoevals';
import { Eval } from 'braintrust';
import { createScorer as evaliteScorer } from 'evalite';
import { describe, expect, it } from 'vitest';
import { createJudge, createJudgeHarness, FactualityJudge, StructuredOutputJudge, ToolCallJudge } from 'vitest-evals';
import { z } from 'zod';
import { pageCode } from '../../../scripts/docs/pages.js';
import { type Lines, playScripted } from '../../../src/runs/testing/play-scripted.js';
import { asScorer, fromScorers, type ScorerReward } from '../../../src/teams/scorers/scorers.js';
import { type Agent, agent } from '../../../src/teams/team/agent.js';
import { defineTeam } from '../../../src/teams/team/team.js';
import { chatServer } from '../../support/chat-server.js';
import { temporaryRoot } from '../../support/tiny-run.js';

const root = temporaryRoot();

interface Data {
  readonly question: string;
  readonly answer: string;
}
type Args = { readonly input: string; readonly output: string; readonly expected: string };

const question = { question: 'Capital of France?', answer: 'Paris' };
/** Three answers to the question: right, almost right, wrong. */
const ANSWERS = ['Paris', 'Pari', 'London'] as const;

const look = { name: 'look', parameters: { type: 'object', properties: { city: { type: 'string' } } } };

const teamOf = (reward: ScorerReward<Data, string>) =>
  defineTeam({
    task: z.object({ question: z.string(), answer: z.string() }),
    agents: { solver: agent({ tools: 'hermes' }) },
    play: async ({ task, agents: { solver } }) => {
      const messages = [{ role: 'user' as const, content: task.question }];
      const reply = await solver(messages, { tools: [look] });
      if (reply.toolCalls.length === 0) return reply.content;
      const results = reply.toolCalls.map(({ id }) => ({ role: 'tool' as const, toolCallId: id, content: 'found' }));
      const message = { role: 'assistant' as const, content: reply.content, toolCalls: reply.toolCalls };
      return (await solver([...messages, message, ...results], { tools: [look] })).content;
    },
    reward,
    metrics: reward.metrics,
  });

type Said = NonNullable<Lines<{ solver: Agent }>['solver']>;
const played = async (reward: ScorerReward<Data, string>, lines: Said) =>
  (await playScripted(teamOf(reward), question, { solver: lines })).score;
/** The named parts of the three answers. */
const partsOf = async (scorers: Parameters<typeof fromScorers<Data, string>>[0]) => {
  const reward = fromScorers(scorers);
  return await Promise.all(ANSWERS.map(async (answer) => (await played(reward, [answer])).parts));
};
const looksFirst = (city: string, answer: string): Said => [
  { toolCalls: [{ name: 'look', arguments: { city } }] },
  answer,
];

describe('autoevals', () => {
  it('gives parts with the numbers of its functions', async () => {
    const near = { scorer: Levenshtein, name: 'near', weight: 2 };
    const size = {
      scorer: async ({ output, expected }: Args) =>
        await NumericDiff({ output: output.length, expected: expected.length }),
      name: 'size',
    };
    expect(await partsOf([ExactMatch, near, size])).toEqual([
      { ExactMatch: 1, near: 2, size: 1 },
      { ExactMatch: 0, near: 1.6, size: 1 - 1 / 9 },
      { ExactMatch: 0, near: 2 * (1 - 6 / 6), size: 1 - 1 / 11 },
    ]);
  });

  it('has no function that calls a model and is not known as a judge', () => {
    const all = Evaluators.flatMap(({ label, methods }) => methods.map(({ method }) => ({ label, method })));
    const judges = fromScorers(all.map(({ method }) => method)).judges.map(({ name }) => name);
    const computes = ['Heuristic', 'Composite'];
    const graded = all.filter(({ label }) => !computes.includes(label)).map(({ method }) => method.name);
    expect(graded.length).toBeGreaterThan(15);
    expect(judges).toEqual(graded);
    expect(fromScorers([Factuality.partial({ model: 'own' })]).judges).toEqual([{ name: 'Factuality', price: 0 }]);
  });
});

const exact = createScorer<string, string>({ id: 'exact', description: 'Compares with the ground truth.' })
  .preprocess(({ run }) => ({ text: run.output.trim() }))
  .generateScore(({ run, results }) => Number(results.preprocessStepResult.text === run.groundTruth))
  .generateReason(({ score }) => `It is ${score}.`);

describe('Mastra', () => {
  it('gives parts with the numbers of its scorers', async () => {
    const scorers = [exact, createKeywordCoverageScorer(), createContentSimilarityScorer()];
    const parts = await partsOf(scorers);
    expect(parts.map((each) => each.exact)).toEqual([1, 0, 0]);
    const onMessages = (text: string) => createContentSimilarityScorer().run(messagesOf(question.question, text));
    const similar = await Promise.all(ANSWERS.map(async (text) => (await onMessages(text)).score));
    expect(parts.map((each) => each['Content Similarity Scorer'])).toEqual(similar);
    expect(new Set(similar).size).toBeGreaterThan(1);
    expect(fromScorers(scorers).judges).toEqual([]);
  });

  it('reads the tool calls of the team', async () => {
    const accuracy = createToolCallAccuracyScorerCode({ expectedTool: 'look' });
    const way = createTrajectoryAccuracyScorerCode({
      expectedTrajectory: { steps: [{ stepType: 'tool_call', name: 'look', toolArgs: { city: 'Paris' } }] },
      comparisonOptions: { ordering: 'strict' },
    });
    const reward = fromScorers<Data, string>([
      { scorer: accuracy, name: 'accuracy' },
      { scorer: way, name: 'way' },
    ]);
    expect((await played(reward, looksFirst('Paris', 'Paris'))).parts).toEqual({ accuracy: 1, way: 1 });
    expect((await played(reward, looksFirst('Rome', 'Paris'))).parts).toMatchObject({ accuracy: 1 });
    expect((await played(reward, ['Paris'])).parts).toEqual({ accuracy: 0, way: 0 });
  });

  it('has judges, whose model is asked once for equal questions', async () => {
    const { url, requests } = await chatServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const delta of [{ role: 'assistant', content: '{"score": 0.75}' }, {}]) {
        const finish_reason = 'content' in delta ? null : 'stop';
        const chunk = { id: '1', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] };
        response.write(`data: ${JSON.stringify(chunk)}\n\n`);
      }
      response.end('data: [DONE]\n\n');
    });
    const model = { id: 'stand-in/judge', url, apiKey: 'none' } as const;
    const createPrompt = ({ run }: { run: { output?: unknown } }) => `Is '${run.output}' fine?`;
    const step = { description: 'asks', createPrompt };
    const whole = createScorer({ id: 'whole', description: 'Asks.', judge: { model, instructions: 'Judge.' } });
    const inStep = createScorer({ id: 'in-step', description: 'Asks in one step.' });
    const reward = fromScorers<Data, string>([
      whole.generateScore(step),
      inStep.generateScore({ ...step, judge: { model, instructions: 'Judge.' } }),
      exact,
    ]);
    expect(reward.judges.map(({ name }) => name)).toEqual(['whole', 'in-step']);
    expect(await played(reward, ['Paris'])).toMatchObject({
      parts: { whole: 0.75, 'in-step': 0.75, exact: 1 },
      metrics: { judge_calls: 2, judge_cached: 0 },
    });
    expect((await played(reward, ['Paris'])).metrics).toEqual({ judge_calls: 0, judge_cached: 2 });
    expect(requests).toHaveLength(2);
    expect(JSON.stringify(requests[0]?.body.messages)).toContain("Is 'Paris' fine?");
  });

  it('names the scorer that fails, and the reason of one that gives no score', async () => {
    const none = createScorer({ id: 'none', description: '' })
      .preprocess(() => notScorable('no call'))
      .generateScore(() => 1);
    await expect(partsOf([none])).rejects.toThrow(
      `the scorer 'none' gave {"notScorable":{"step":"preprocess","reason":"no call"}}; expected a number`,
    );
    const broken = createScorer({ id: 'broken', description: '' }).generateScore(() => {
      throw new Error('no such file');
    });
    await expect(partsOf([broken])).rejects.toThrow(/the scorer 'broken' failed: .*no such file/s);
  });

  it('runs the reward of a team as a scorer of its experiments', async () => {
    const scorer = asScorer(teamOf(fromScorers<Data, string>([ExactMatch, { scorer: Levenshtein, weight: 2 }])));
    const step = createStep({
      id: 'answer',
      inputSchema: z.object({ question: z.string(), answer: z.string() }),
      outputSchema: z.object({ text: z.string() }),
      execute: async ({ inputData }) => ({ text: inputData.question.slice(0, 4) }),
    });
    const { inputSchema, outputSchema } = step;
    const target = createWorkflow({ id: 'answers', inputSchema, outputSchema }).then(step).commit();
    const reward = createScorer<Data, { text: string }>({
      id: 'reward',
      description: "The team's reward.",
    }).generateScore(
      async ({ run }) => (await scorer({ input: run.input ?? question, output: run.output.text })).score,
    );
    const data = ANSWERS.map((text) => ({ input: { question: text, answer: 'Pari' } }));
    const { scores, summary } = await runEvals({ target, data, scorers: { workflow: [reward] } });
    expect(summary.totalItems).toBe(3);
    expect(scores.workflow.reward).toBeCloseTo((3 + 3 + 0) / 3, 12);
  });
});

describe('evalite', () => {
  const scorer = ({ output, expected }: { output: string; expected?: string }) => ({
    score: output === expected ? 1 : 0.25,
    metadata: { output },
  });
  const fromFunction = evaliteScorer<string, string, string>({ name: 'created', scorer });

  it('gives parts with the numbers of its scorers', async () => {
    const inline = { name: 'inline', description: 'as evalite takes it', scorer };
    expect(await partsOf([inline, { name: 'created', scorer: fromFunction }])).toEqual([
      { inline: 1, created: 1 },
      { inline: 0.25, created: 0.25 },
      { inline: 0.25, created: 0.25 },
    ]);
    expect(() => fromScorers([fromFunction])).toThrow('scorer 1 needs a `name`'); // its functions have none
  });

  it('names the scorer that fails', async () => {
    const wrong = evaliteScorer<string, string, string>({ name: 'inner', scorer: () => ({ score: 'high' }) as never });
    await expect(partsOf([{ name: 'wrong', scorer: wrong }])).rejects.toThrow(
      "the scorer 'wrong' failed: The scorer 'inner' must return a number.",
    );
  });

  it('runs the reward of a team as a scorer', async () => {
    const code = pageCode('docs/train-your-production-agent.md', 'The reward as a scorer', 'ts');
    const folder = await folderWith('evalite', { 'team.eval.ts': code, 'run.mjs': RUN_EVALITE });
    await program(folder, 'run.mjs');
    const results = z.object({
      evals: z.array(
        z.object({
          results: z.array(
            z.object({ output: z.string(), scores: z.array(z.object({ name: z.string(), score: z.number() })) }),
          ),
        }),
      ),
    });
    const { evals } = results.parse(JSON.parse(await readFile(join(folder, 'results.json'), 'utf8')));
    const rewards = evals.flatMap((each) => each.results.map(({ output, scores }) => [output, scores[0]?.score]));
    expect(Object.fromEntries(rewards)).toEqual(REWARDS);
    expect(evals[0]?.results[0]?.scores[0]?.name).toBe('answers');
  });
});

describe('Braintrust', () => {
  it('runs the reward of a team, and the scorers of that reward, offline and without an account', async () => {
    const scorers = [ExactMatch, Levenshtein];
    const team = { ...teamOf(fromScorers<Data, string>(scorers)), name: 'answers' };
    const data = ANSWERS.map((text) => ({ input: { question: text, answer: 'Pari' }, expected: 'Pari' }));
    const options = { noSendLogs: true, reporter: { name: 'silent', reportEval: () => true, reportRun: () => true } };
    const task = async ({ question }: Data) => question;
    const { results } = await Eval('answers', { data, task, scores: [asScorer(team), ...scorers] }, options);
    const scores = results.map(({ output, scores }) => [output, scores]);
    expect(Object.fromEntries(scores)).toEqual({
      Paris: { answers: 0.8, ExactMatch: 0, Levenshtein: 0.8 },
      Pari: { answers: 2, ExactMatch: 1, Levenshtein: 1 },
      London: { answers: 0, ExactMatch: 0, Levenshtein: 0 },
    });
  });
});

describe('vitest-evals', () => {
  const length = createJudge<string, string>('length', ({ output, session }) => ({
    score: output.length / 10,
    metadata: { rationale: `${session.events.length} events` },
  }));

  it('gives parts with the numbers of its judges', async () => {
    expect(await partsOf([length])).toEqual([{ length: 0.5 }, { length: 0.4 }, { length: 0.6 }]);
    const city = StructuredOutputJudge();
    const args = ({ outcome }: { outcome: string }) => ({
      input: '',
      output: { city: outcome },
      expected: { city: 'Paris' },
    });
    const reward = fromScorers<Data, string>([city], { args });
    expect((await played(reward, ['Paris'])).parts).toEqual({ StructuredOutputJudge: 1 });
    expect((await played(reward, ['Rome'])).parts).toEqual({ StructuredOutputJudge: 0 });
  });

  it('reads the tool calls of the team', async () => {
    const tool = { name: 'look', arguments: { city: 'Paris' } };
    const seen = createJudge<string, string>('seen', ({ toolCalls: [call] }) => ({
      score: Number(call?.status === 'ok' && call.result === 'found'),
    }));
    const reward = fromScorers<Data, string>([ToolCallJudge({ expectedTools: [tool], params: 'strict' }), seen]);
    expect((await played(reward, looksFirst('Paris', 'Paris'))).parts).toEqual({ ToolCallJudge: 1, seen: 1 });
    expect((await played(reward, looksFirst('Rome', 'Paris'))).parts).toMatchObject({ ToolCallJudge: 0 });
    expect((await played(reward, ['Paris'])).parts).toEqual({ ToolCallJudge: 0, seen: 0 });
  });

  it('has judges, which ask the model of their harness', async () => {
    const prompts: string[] = [];
    const judgeHarness = createJudgeHarness({
      run: ({ prompt }) => {
        prompts.push(prompt);
        return { choice: 'B', rationale: 'more' };
      },
    });
    const grader = createJudge({
      name: 'grader',
      judgeHarness,
      assess: async ({ runJudge, output }) => {
        const verdict = await runJudge?.({ prompt: `Grade ${output}` });
        return { score: JSON.stringify(verdict).includes('"B"') ? 0.5 : 0 };
      },
    });
    const reward = fromScorers<Data, string>([FactualityJudge({ judgeHarness }), grader, length]);
    expect(reward.judges.map(({ name }) => name)).toEqual(['FactualityJudge', 'grader']);
    expect(await played(reward, ['Paris'])).toMatchObject({
      parts: { FactualityJudge: 0.6, grader: 0.5, length: 0.5 },
      metrics: { judge_calls: 2 },
    });
    expect(prompts[0]).toContain('"expert_answer": "Paris"');
    expect(prompts[1]).toBe('Grade Paris');
  });

  it('names the judge that fails, and one that gives no score', async () => {
    await expect(partsOf([FactualityJudge()])).rejects.toThrow(
      "the scorer 'FactualityJudge' failed: FactualityJudge requires a judgeHarness",
    );
    const unscored = createJudge<string, string>('unscored', () => ({ score: null }));
    await expect(partsOf([unscored])).rejects.toThrow(`the scorer 'unscored' gave {"score":null}; expected a number`);
  });

  it('runs the reward of a team as a judge', async () => {
    const folder = await folderWith('vitest-evals', { 'team.test.ts': DESCRIBE_EVAL });
    const vitest = fileURLToPath(new URL('node_modules/vitest/vitest.mjs', import.meta.url));
    await program(folder, vitest, 'run', '--root', '.', '--reporter=json', '--outputFile=results.json');
    const results = z.object({
      testResults: z.array(
        z.object({
          assertionResults: z.array(
            z.object({
              title: z.string(),
              meta: z.object({
                eval: z.object({ scores: z.array(z.object({ name: z.string(), score: z.number() })) }),
              }),
            }),
          ),
        }),
      ),
    });
    const { testResults } = results.parse(JSON.parse(await readFile(join(folder, 'results.json'), 'utf8')));
    const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
    expect(Object.fromEntries(tests.map(({ title, meta }) => [title, meta.eval.scores[0]?.score]))).toEqual(REWARDS);
    expect(tests[0]?.meta.eval.scores[0]?.name).toBe('answers');
  });
});

/** A question and an answer as messages of Mastra. */
function messagesOf(question: string, answer: string) {
  const message = (role: 'user' | 'assistant', text: string) => ({
    id: role,
    role,
    createdAt: new Date(0),
    content: { format: 2 as const, parts: [{ type: 'text' as const, text }] },
  });
  const inputMessages = [message('user', question)];
  const input = { inputMessages, rememberedMessages: [], systemMessages: [], taggedSystemMessages: {} };
  return { input, output: [message('assistant', answer)] };
}

/** The rewards of the three answers in the team of the child processes. */
const REWARDS = { Paris: 1.5, Pari: 0.4, London: 0 };

const source = (path: string) => JSON.stringify(fileURLToPath(new URL(`../../../src/${path}`, import.meta.url)));

const TEAM = `
import { Levenshtein, ExactMatch } from 'autoevals';
import { z } from 'zod';
import { fromScorers } from ${source('teams/scorers/scorers.ts')};
import { agent } from ${source('teams/team/agent.ts')};
import { defineTeam } from ${source('teams/team/team.ts')};

export const questions = ${JSON.stringify(ANSWERS)}.map((word) => ({ question: 'Say ' + word, answer: 'Paris' }));
export const program = async (question) => question.slice(4);
export const team = defineTeam({
  name: 'answers',
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: { solver: agent() },
  play: async ({ task }) => program(task.question),
  reward: fromScorers([ExactMatch, { scorer: Levenshtein, weight: 0.5 }]),
});
`;

const RUN_EVALITE = `
import { createInMemoryStorage } from 'evalite/in-memory-storage';
import { runEvalite } from 'evalite/runner';
await runEvalite({
  mode: 'run-once-and-exit',
  storage: createInMemoryStorage(),
  outputPath: 'results.json',
});
`;

const DESCRIBE_EVAL = `
import { createHarness, createJudge, describeEval } from 'vitest-evals';
import { asScorer } from 'drmas/tasks';
import { program, questions, team } from './team.js';

const harness = createHarness({
  name: 'program',
  run: async ({ input }) => {
    const output = await program(input.question);
    return { output, messages: [{ role: 'user', content: input.question }, { role: 'assistant', content: output }] };
  },
});
const judges = [createJudge(team.name, asScorer(team))];
describeEval('answers', { harness, judges, judgeThreshold: null }, (it) => {
  for (const input of questions) it(input.question.slice(4), async ({ run }) => void (await run(input)));
});
`;

/** The libraries of drmas are their sources. */
const VITE_CONFIG = `export default {
  resolve: { alias: { '@drmas/engine': ${JSON.stringify(fileURLToPath(new URL('../../../packages/engine/src', import.meta.url)))} } },
};`;

/** A folder of a user: the packages of this one, a team, and files whose `drmas` are these sources. */
async function folderWith(name: string, files: Readonly<Record<string, string>>): Promise<string> {
  const folder = join(root, name);
  await mkdir(folder, { recursive: true });
  await symlink(fileURLToPath(new URL('node_modules', import.meta.url)), join(folder, 'node_modules'));
  const tasks = source('teams/scorers/scorers.ts');
  const common = { 'team.ts': TEAM, 'vite.config.mjs': VITE_CONFIG, 'package.json': '{"type":"module"}' };
  for (const [file, text] of Object.entries({ ...common, ...files }))
    await writeFile(join(folder, file), text.replaceAll("'drmas/tasks'", tasks));
  return folder;
}

/** Runs a program of the folder on this Node. It throws its output if it fails. */
async function program(folder: string, ...words: readonly string[]): Promise<void> {
  const { PATH } = process.env;
  const env = { ...(PATH === undefined ? {} : { PATH }), HOME: folder, NO_COLOR: '1' };
  await promisify(execFile)(process.execPath, words, { cwd: folder, env }).catch((error) => {
    throw new Error(`${error.stdout}${error.stderr}`);
  });
}
