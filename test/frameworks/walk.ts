/**
 * The way of a program from its traces to its own trained agents and back: a program of AI SDK whose telemetry is
 * recorded, `drmas learn`, `drmas serve`, and the same program on the served models. One test for each version.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { tinyDecoder } from '@drmas/engine/model';
import { expect } from 'vitest';
import { z } from 'zod';
import { defineRecipe } from '../../src/method/recipe/define.js';
import { loadTeam } from '../../src/runs/run/load-team.js';
import { arithmetic } from '../../src/teams/tasks/generated/arithmetic.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { drmas } from '../support/command-line.js';
import { eventually } from '../support/time-and-chance.js';

const WEATHER: Readonly<Record<string, string>> = { Oslo: 'rain', Rome: 'sun', Bonn: 'rain', Lima: 'sun', Bari: 'sun' };
const PACKED: Readonly<Record<string, string>> = { rain: 'coat', sun: 'hat' };
const QUESTIONS = Object.keys(WEATHER).flatMap((city) => [`To ${city}.`, `${city}!`]);

/** The tool of the packer. */
export const look = ({ city }: { readonly city: string }): string => WEATHER[city] ?? 'unknown';

export const citySchema = z.object({ city: z.string() });

export interface Trip {
  readonly city: string;
  readonly bag: string;
}

/** The program: a reader gives an object, a packer with a tool gives a text. */
export type Program = (question: string) => Promise<Trip>;

const cityIn = (text: string) => Object.keys(WEATHER).find((city) => text.includes(city)) ?? '';

/** The hosted model's answer: a call of the tool as an object, else a text. */
export function hostedAnswer(prompt: readonly { readonly content: unknown }[], isJson: boolean): string | Trip {
  const last = JSON.stringify(prompt.at(-1)?.content);
  const weather = Object.keys(PACKED).find((each) => last.includes(`"${each}"`));
  if (isJson) return JSON.stringify({ city: cityIn(last) });
  return weather === undefined ? { city: cityIn(last), bag: '' } : (PACKED[weather] ?? '');
}

/** The recipe of a program, for `drmas learn`. */
export const recipeOf = (program: Program) =>
  defineRecipe({
    name: 'trip',
    team: defineTeam({
      name: 'trip',
      task: z.object({ question: z.string() }),
      agents: {
        reader: agent({ sampling: { maxTokens: 24 } }),
        packer: agent({ tools: 'plain', sampling: { maxTokens: 24 } }),
      },
      play: ({ task }) => program(task.question),
      reward: ({ outcome, task }) => outcome.bag === PACKED[look({ city: cityIn(task.question) })],
    }),
    tasks: arithmetic() as never, // those of the traces take their place
    model: tinyDecoder({
      ...{ width: 48, layers: 2, heads: 3, feedForward: 128, context: 384 },
      tokenizer: { type: 'bytes' },
    }),
    warmStart: { steps: 300, batch: 8, learningRate: 3e-3 },
    training: { steps: 1, tasksPerStep: 2, groupSize: 2 },
    evaluation: { tasks: 2, samples: 1 },
  });

/** A version of AI SDK with the program on its models. */
export interface WalkedVersion {
  /** The file of the recipe. */
  readonly recipe: string;
  /** Runs the program on the hosted model once for each question, each in a span; gives the spans as lines. */
  traced(questions: readonly string[]): Promise<string>;
  /** The program on the models of a server with OpenAI's interface, with the defaults of the provider. */
  served(url: string): Program;
}

/** Walks the whole way. @returns How many of the questions the trained program answers rightly */
export async function walk({ recipe, traced, served }: WalkedVersion, root: string): Promise<number> {
  await mkdir(root, { recursive: true });
  const traces = join(root, 'traces.jsonl');
  await writeFile(traces, await traced(QUESTIONS));
  const [out, run] = [join(root, 'out'), join(root, 'run')];
  const learnt = await drmas(['learn', traces, '--recipe', recipe, '--out', out, '--run', run, '--yes']);
  expect(learnt).toMatchObject({ code: 0, err: '' });
  expect(learnt.out).not.toContain('not read');
  expect(learnt.out).not.toContain('another system prompt');

  await using team = await loadTeam(run);
  const port = await freePort();
  const stopped = new AbortController();
  const serving = drmas(['serve', run, '--port', String(port), '--threads', '1'], { signal: stopped.signal });
  await eventually(async () => (await fetch(`http://127.0.0.1:${port}/health`)).ok);
  const program = served(`http://127.0.0.1:${port}/v1`);
  let right = 0;
  for (const question of QUESTIONS) {
    const played = await team
      .play({ question }, { sampling: { temperature: 0 } })
      .then(({ outcome }) => outcome, failure);
    expect(await program(question).catch(failure), question).toEqual(played);
    right += Number((played as Trip).bag === PACKED[look({ city: cityIn(question) })]);
  }
  stopped.abort(new Error('interrupted'));
  expect(await serving).toMatchObject({ code: 0 });
  return right;
}

/** The program's own error: an answer that does not fit ends play and the served program alike. */
const failure = () => 'failed';

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (typeof address === 'object' && address !== null ? resolve(address.port) : reject(address)));
    });
  });
}
