/** The person, or the program behind a pipe, that answers in place of agents. */
import { createInterface, type Interface } from 'node:readline';
import { jsonValue, RunError } from '@drmas/engine/errors';
import { type AgentAnswer, type AgentQuestion, type Answerer, NoMoreAnswers } from '../../../runs/studies.js';
import { jsonText, type Keyboard, withoutMark } from '../../command-context.js';
import { questionLines } from '../../reporter/planning/demonstrations-printer.js';
import type { Screen } from '../../reporter/screen.js';

/** The standard input, line by line. It is opened at the first question. */
export class TypedAnswers {
  readonly #keyboard: () => Keyboard;
  readonly #screen: Screen;
  readonly #isJson: boolean;
  #lines: Interface | undefined;
  #next: AsyncIterator<string> | undefined;
  #isTerminal = false;
  /** The last question: agents that are asked at the same time wait for each other. */
  #asked: Promise<unknown> = Promise.resolve();
  #task: unknown;

  constructor(keyboard: () => Keyboard, screen: Screen, isJson: boolean) {
    this.#keyboard = keyboard;
    this.#screen = screen;
    this.#isJson = isJson;
  }

  readonly answer: Answerer = (question, signal) => {
    const answer = this.#asked.then(() => this.#ask(question, signal));
    this.#asked = answer.catch(() => {});
    return answer;
  };

  close(): void {
    this.#lines?.close();
  }

  async #ask(question: AgentQuestion, signal: AbortSignal): Promise<AgentAnswer> {
    signal.throwIfAborted();
    const isNew = question.task !== this.#task;
    this.#task = question.task;
    if (this.#isJson) this.#screen.write(`${jsonText({ type: 'question', ...question })}\n`);
    else for (const line of questionLines(question, isNew, this.#screen)) this.#screen.write(`${line}\n`);
    for (;;) {
      const line = await this.#line(`${question.agent}> `);
      const answer = this.#isJson ? fromJson(line) : answerIn(line, question);
      if (!(answer instanceof Error)) return answer;
      this.#screen.write(`${answer.message}\n`);
    }
  }

  /** @throws NoMoreAnswers at the end of the input */
  async #line(prompt: string): Promise<string> {
    const input = this.#open();
    const parts: string[] = [];
    for (;;) {
      if (this.#isTerminal) {
        this.#lines?.setPrompt(parts.length === 0 ? prompt : '... ');
        this.#lines?.prompt();
      }
      const { done, value } = await input.next();
      if (done === true) throw new NoMoreAnswers('the answers ended');
      const line = withoutMark(value);
      if (this.#isJson || !line.endsWith('\\')) return [...parts, line].join('\n');
      parts.push(line.slice(0, -1));
    }
  }

  #open(): AsyncIterator<string> {
    if (this.#next !== undefined) return this.#next;
    const { input, output } = this.#keyboard();
    this.#isTerminal = input.isTTY === true && this.#screen.live && !this.#isJson;
    const lines = createInterface(this.#isTerminal ? { input, output, terminal: true } : { input });
    lines.on('SIGINT', () => lines.close()); // a terminal in raw mode sends no signal
    this.#lines = lines;
    this.#next = lines[Symbol.asyncIterator]();
    return this.#next;
  }
}

/** A line of a program. @throws RunError */
function fromJson(line: string): AgentAnswer {
  const value = jsonValue(line);
  if (value === undefined)
    throw new RunError(
      `stdin: expected an answer as JSON on one line, such as "yes", {"toolCalls":[{"name":"look","arguments":{}}]}, or null to leave the task out`,
    );
  return value === null ? undefined : (value as AgentAnswer); // its form is checked as that of a script's answer
}

/** A line of a person: an answer, or an error that says how to write one. */
function answerIn(line: string, { tools = [] }: AgentQuestion): AgentAnswer | Error {
  const text = line.trim();
  if (text === '/quit') throw new NoMoreAnswers('the answers ended');
  if (text === '/skip') return undefined;
  if (text === '') return new Error('an answer is a text; /skip leaves this task out, /quit ends');
  const [, name = '', given = ''] = /^\/call(?:\s+(\S+)\s*([\s\S]*))?$/.exec(text) ?? [];
  if (!/^\/call(\s|$)/.test(text)) return line;
  const names = tools.map((tool) => tool.name);
  if (!names.includes(name))
    return new Error(names.length === 0 ? 'the agent has no tools here' : `/call one of: ${names.join(', ')}`);
  const values = given === '' ? {} : jsonValue(given);
  if (typeof values !== 'object' || values === null || Array.isArray(values))
    return new Error(`the arguments are a JSON object, such as /call ${name} {"key":"value"}`);
  return { toolCalls: [{ name, arguments: values }] };
}
