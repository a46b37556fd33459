/**
 * Rendering of chat templates, which come with downloaded models: programs of others, whose work and output are
 * bounded.
 */
import { Environment, Interpreter, Template } from '@huggingface/jinja';

/** The longest template in characters. Real ones have a few thousand. */
const LONGEST_TEMPLATE = 2e5;
/** The most white space in one place: the library's reader takes time with its square. */
const LONGEST_SPACE = 500;
/**
 * Work that a template may do beyond what each message and character allows. An evaluated expression is 1, a round of a
 * loop 25; real templates do a few hundred a message.
 */
const [WORK, WORK_A_MESSAGE, WORK_A_ROUND] = [5e5, 5000, 25];
/** Characters that count as 1 where a text is made; an entry of a new list is 1. What was seen before counts less. */
const [CHARACTERS_NEW, SEEN_BEFORE] = [64, 1024];
/** The most characters that a text may have beyond ten times the conversation: they are tokenised next. */
const CHARACTERS = 3e5;
/** The most entries that a list may have, and numbers a range. */
const [ENTRIES, RANGE] = [1e5, 1e4];

/** A part of a template: what a loop goes over, and the list inside `for x in list if test`. */
interface Node {
  readonly type: string;
  readonly iterable?: Node;
  readonly lhs?: Node;
}

/** A value of a template: its text, its entries, or anything else. */
interface Value {
  readonly type: string;
  readonly value: unknown;
}

/** The library's interpreter. Its own declarations name modules that are not there. */
const Base = Interpreter as unknown as new (
  environment: Environment,
) => { run(program: unknown): Value; evaluate(node: Node | undefined, environment: Environment): Value };

/** A message or a tool as a template reads it. */
type Conversed = Readonly<Record<string, unknown>>;

/** The characters of all texts; calls and schemas count with their names. */
function charactersOf({ content, ...rest }: Conversed): number {
  const more = Object.keys(rest).length > 1 ? JSON.stringify(rest).length : 0; // than the role
  return more + (typeof content === 'string' ? content.length : 0);
}

/** @throws Error when the template cannot be read */
export function chatTemplate(source: string) {
  if (source.length > LONGEST_TEMPLATE) throw new Error(`it has more than ${LONGEST_TEMPLATE} characters`);
  for (const [space] of source.matchAll(/\s+/g))
    if (space.length > LONGEST_SPACE)
      throw new Error(
        `it has ${space.length} characters of white space in one place, expected at most ${LONGEST_SPACE}`,
      );
  const { parsed } = new Template(source);
  /** @throws Error when the template raises one, or does more than a conversation takes */
  return (
    variables: Readonly<Record<string, unknown>>,
    messages: readonly Conversed[],
    tools?: Conversed[],
  ): string => {
    const environment = new Environment();
    const conversation = tools === undefined ? { messages } : { messages, tools };
    for (const [name, value] of Object.entries({ ...globals, ...variables, ...conversation }))
      environment.set(name, value);
    const characters = [...messages, ...(tools ?? [])].reduce((sum, part) => sum + charactersOf(part), 0);
    const limits = {
      work: WORK + WORK_A_MESSAGE * messages.length + characters,
      characters: CHARACTERS + 10 * characters,
    };
    return String(new BoundedInterpreter(environment, limits).run(parsed).value);
  };
}

/** Names that every template can use, as in the library. */
const globals = {
  false: false,
  true: true,
  none: null,
  False: false,
  True: true,
  None: null,
  raise_exception(message: string) {
    throw new Error(message);
  },
  range(start: number, stop?: number, step = 1) {
    const [from, to] = stop === undefined ? [0, start] : [start, stop];
    const length = Math.max(0, Math.ceil((to - from) / step));
    if (!(length <= RANGE)) throw new Error(`range(...): expected at most ${RANGE} numbers`);
    return Array.from({ length }, (_, i) => from + i * step);
  },
  strftime_now: (format: string) => strftime.render({ format }),
};
const strftime = new Template('{{ strftime_now(format) }}');

/** An interpreter that counts a template's work, and stops it at a limit. */
class BoundedInterpreter extends Base {
  readonly #limits: { readonly work: number; readonly characters: number };
  #done = 0;
  /** The iterated expressions of the loops that have begun. */
  readonly #iterated = new Set<Node>();
  readonly #seen = new WeakSet<Value>();

  constructor(environment: Environment, limits: { readonly work: number; readonly characters: number }) {
    super(environment);
    this.#limits = limits;
  }

  override evaluate(node: Node | undefined, environment: Environment): Value {
    this.#work(1);
    if (node?.type === 'For' && node.iterable !== undefined) this.#iterated.add(node.iterable.lhs ?? node.iterable);
    const value = super.evaluate(node, environment);
    this.#weigh(value, node !== undefined && this.#iterated.has(node));
    return value;
  }

  #weigh(evaluated: Value, isIterated: boolean): void {
    const { type, value } = evaluated;
    const isNew = !this.#seen.has(evaluated);
    this.#seen.add(evaluated);
    if (typeof value === 'string') {
      if (value.length > this.#limits.characters)
        throw new Error(`it makes a text of more than ${this.#limits.characters} characters`);
      this.#work(value.length / (isNew ? CHARACTERS_NEW : SEEN_BEFORE));
    } else if (Array.isArray(value) || value instanceof Map) {
      const entries = Array.isArray(value) ? value.length : value.size;
      if (entries > ENTRIES) throw new Error(`it makes a value of type ${type} with more than ${ENTRIES} entries`);
      this.#work(isIterated ? entries * WORK_A_ROUND : entries / (isNew ? 1 : SEEN_BEFORE));
    }
  }

  #work(amount: number): void {
    this.#done += amount;
    if (this.#done > this.#limits.work) throw new Error('it does more than any conversation takes');
  }
}
