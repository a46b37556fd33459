import { z } from 'zod';
import { ArgumentError } from '../core/errors.js';
import { issuesText } from '../core/issues.js';
import { exactMatch } from '../tasks/grading/question-answering.js';
import type { Retriever, Search } from '../tasks/retrieval/retriever.js';
import { agent } from './agent.js';
import { type Parser, tagged } from './parsers.js';
import { defineTeam } from './team.js';

/** A question, its answer or several that are right, and, where questions are about different corpora, the name of one. */
const searchTask = z.object({
  question: z.string(),
  answer: z.union([z.string(), z.array(z.string()).min(1).readonly()]),
  corpus: z.string().optional(),
});

export type SearchTask = z.output<typeof searchTask>;

/** What an agent of the team is to be told. */
export interface SearchPrompt {
  readonly agent: 'verifier' | 'searcher' | 'answerer';
  readonly question: string;
  /** What was searched so far, in order. */
  readonly evidence: readonly Search[];
}

interface RoleOptions<Value> {
  /** An empty text says that there is no system prompt. */
  readonly system?: string;
  readonly parse?: Parser<Value>;
}

export interface SearchTeamOptions {
  /** One for all tasks, or the one for a task. */
  readonly retriever: Retriever | ((task: SearchTask) => Retriever);
  /** How often the verifier may ask for a search. Default 4. An episode has up to 2 maxTurns + 1 calls of agents. */
  readonly maxTurns?: number;
  /** Passages that a search brings, at most. Default 3. */
  readonly topk?: number;
  /** What a verdict that is neither yes nor no counts as. Default 'search': it buys what a plain no has for nothing. */
  readonly onUnreadableVerdict?: 'search' | 'answer';
  /** An empty or otherwise invalid query is passed over, its turn being spent, or the question is searched. Default 'skip'. */
  readonly onEmptyQuery?: 'skip' | 'question';
  /** A query that finds nothing joins the evidence, so that the searcher can see it, or leaves no trace. Default 'note'. */
  readonly onNoResults?: 'note' | 'skip';
  /** What an invalid verdict, query or answer costs its turn. Default 0.01. */
  readonly invalidPenalty?: number;
  readonly verifier?: RoleOptions<'yes' | 'no'>;
  readonly searcher?: RoleOptions<string>;
  readonly answerer?: RoleOptions<string>;
  /** Default: the question, then the evidence. */
  readonly prompt?: (request: SearchPrompt) => string;
}

const isFunction = (value: unknown) => typeof value === 'function';
const functionOf = <F>() => z.custom<F>(isFunction, 'expected a function');
const role = z.strictObject({ system: z.string().optional(), parse: functionOf<Parser<unknown>>().optional() });

const optionsSchema = z.strictObject({
  retriever: z.custom<SearchTeamOptions['retriever']>(
    (value) => isFunction(value) || isFunction((value as Retriever | undefined)?.search),
    'expected a retriever, or a function that gives one for a task',
  ),
  maxTurns: z.int().min(1).default(4),
  topk: z.int().min(1).default(3),
  onUnreadableVerdict: z.enum(['search', 'answer']).default('search'),
  onEmptyQuery: z.enum(['skip', 'question']).default('skip'),
  onNoResults: z.enum(['note', 'skip']).default('note'),
  invalidPenalty: z.number().min(0).default(0.01),
  verifier: role.optional(),
  searcher: role.optional(),
  answerer: role.optional(),
  prompt: functionOf<(request: SearchPrompt) => string>().default(() => readablePrompt),
});

/**
 * A verifier reads the question and what was found, and says whether that is enough. No sends a searcher to write a query,
 * whose results join the evidence; yes, or the end of the last turn, sends an answerer. The team earns 1 for an answer that
 * matches (SQuAD's exact match). A search that fails ends the episode.
 *
 * @throws ArgumentError naming the option that is wrong.
 */
export function searchTeam(options: SearchTeamOptions) {
  const checked = optionsSchema.safeParse(options);
  if (!checked.success) throw new ArgumentError(`searchTeam(...): ${issuesText(checked.error.issues)}`);
  const { retriever, maxTurns, topk, onUnreadableVerdict, onEmptyQuery, onNoResults, invalidPenalty, prompt } =
    checked.data;
  const verdict: Parser<'yes' | 'no'> = options.verifier?.parse ?? taggedVerdict;
  return defineTeam({
    name: 'search',
    task: searchTask,
    agents: {
      verifier: agent({ ...systemOf(options.verifier, systems.verifier), parse: verdict, invalidPenalty }),
      searcher: agent({
        ...systemOf(options.searcher, systems.searcher),
        parse: options.searcher?.parse ?? tagged('search'),
        invalidPenalty,
      }),
      answerer: agent({
        ...systemOf(options.answerer, systems.answerer),
        parse: options.answerer?.parse ?? tagged('answer'),
        invalidPenalty,
      }),
    },
    async play({ task, agents: { verifier, searcher, answerer }, signal }) {
      const source = typeof retriever === 'function' ? retriever(task) : retriever;
      const evidence: Search[] = [];
      const told = (agent: SearchPrompt['agent']) => prompt({ agent, question: task.question, evidence });
      for (let turn = 0; turn < maxTurns; turn++) {
        const verdict = await verifier(told('verifier'));
        const enough = verdict.value ?? (onUnreadableVerdict === 'answer' ? 'yes' : 'no');
        if (enough === 'yes') break;
        const written = await searcher(told('searcher'));
        const query = written.value ?? (onEmptyQuery === 'question' ? task.question : undefined);
        if (query === undefined) continue;
        const passages = await source.search(query, topk, signal);
        if (passages.length > 0 || onNoResults === 'note') evidence.push({ query, passages });
      }
      const answer = await answerer(told('answerer'));
      return { answer: answer.value };
    },
    reward: ({ outcome, task }) => ({ correct: exactMatch(outcome.answer, task.answer) }),
  });
}

const systems = {
  verifier:
    'Decide whether the evidence is enough to answer the question. End with <verify>yes</verify> or <verify>no</verify>.',
  searcher: 'Write a search query for what is still missing. End with <search>the query</search>.',
  answerer: 'Answer the question from the evidence, as briefly as possible. End with <answer>the answer</answer>.',
};

function systemOf(options: RoleOptions<unknown> | undefined, fallback: string): { system?: string } {
  const system = options?.system ?? fallback;
  return system === '' ? {} : { system };
}

const taggedVerdict: Parser<'yes' | 'no'> = (text) => {
  const said = tagged('verify')(text)?.toLowerCase();
  return said === 'yes' || said === 'no' ? said : undefined;
};

function readablePrompt({ question, evidence }: SearchPrompt): string {
  const found = evidence.map(({ query, passages }) => {
    const lines = passages.map(({ title, text }) => `- ${title === undefined ? '' : `${title}: `}${text}`);
    return [`Search: ${query}`, ...(lines.length > 0 ? lines : ['- nothing found'])].join('\n');
  });
  return [`Question: ${question}`, 'Evidence:', ...(found.length > 0 ? found : ['none yet'])].join('\n');
}
