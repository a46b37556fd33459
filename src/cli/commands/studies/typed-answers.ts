/** The person, or the program behind a pipe, that answers in place of agents. */
import { jsonValue, RunError } from '@drmas/engine/errors';
import { type AgentAnswer, type AgentQuestion, type Answerer, NoMoreAnswers } from '../../../runs/studies.js';
import { jsonText, type Keyboard } from '../../command-context.js';
import { type InputLines, inputLines } from '../../input-lines.js';
import { questionLines } from '../../reporter/planning/demonstrations-printer.js';
import type { Screen } from '../../reporter/screen.js';

/** The standard input, line by line. It is opened at the first question. */
export class TypedAnswers {
  readonly #keyboard: () => Keyboard;
  readonly #screen: Screen;
  readonly #isJson: boolean;
  #input: InputLines | undefined;
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
    this.#input?.editor.close();
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
    const { editor, lines } = this.#open();
    const parts: string[] = [];
    for (;;) {
      if (this.#isTerminal) {
        editor.setPrompt(parts.length === 0 ? prompt : '... ');
        editor.prompt();
      }
      const { done, value: line } = await lines.next();
      if (done === true) throw new NoMoreAnswers('the answers ended');
      if (this.#isJson || !line.endsWith('\\')) return [...parts, line].join('\n');
      parts.push(line.slice(0, -1));
    }
  }

  #open(): InputLines {
    if (this.#input !== undefined) return this.#input;
    const keyboard = this.#keyboard();
    this.#isTerminal = keyboard.input.isTTY === true && this.#screen.live && !this.#isJson;
    this.#input = inputLines(keyboard, this.#isTerminal);
    const { editor } = this.#input;
    editor.on('SIGINT', () => editor.close()); // a terminal in raw mode sends no signal
    return this.#input;
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
