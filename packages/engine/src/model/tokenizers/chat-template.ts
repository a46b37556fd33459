/**
 * Rendering of chat templates, which come with downloaded models: programs of others, whose work and output are
 * bounded.
 */
import { Budget } from '../jinja/budget.js';
import { globals } from '../jinja/globals.js';
import { Interpreter } from '../jinja/interpreter.js';
import { parse } from '../jinja/parser.js';
import { templateValue, type Value } from '../jinja/values.js';

/** The longest template in characters. Real ones have a few thousand. */
const LONGEST_TEMPLATE = 2e5;
/** Work that a template may do beyond what each message and character allows. Real ones do a few hundred a message. */
const [WORK, WORK_A_MESSAGE] = [5e5, 5000];
/** The most characters that a text may have beyond ten times the conversation: they are tokenised next. */
const CHARACTERS = 3e5;

/** A message or a tool as a template reads it: plain data of JavaScript, or values with numbers as JSON wrote them. */
type Conversed = Readonly<Record<string, unknown>>;

/** The characters and the entries of a value. */
function sizeOf(value: Value): number {
  if (typeof value === 'string') return value.length;
  if (Array.isArray(value)) return value.reduce((sum: number, item: Value) => sum + sizeOf(item) + 1, 0);
  if (!(value instanceof Map)) return 1;
  return [...value].reduce((sum, [key, item]) => sum + sizeOf(key) + sizeOf(item), 0);
}

/** @throws Error when the template cannot be read */
export function chatTemplate(source: string) {
  if (source.length > LONGEST_TEMPLATE) throw new Error(`it has more than ${LONGEST_TEMPLATE} characters`);
  const parsed = readable(() => parse(source));
  /**
   * @param now The time that `strftime_now` writes
   * @throws Error when the template raises one, or does more than a conversation takes
   */
  return (
    variables: Readonly<Record<string, unknown>>,
    messages: readonly Conversed[],
    tools?: readonly Conversed[],
    now: () => Date = () => new Date(),
  ): string => {
    // As in transformers, `tools` and `documents` are None if there are none.
    const conversation = { messages: templateValue(messages), tools: templateValue(tools ?? null), documents: null };
    const characters = sizeOf(conversation.messages) + sizeOf(conversation.tools);
    const budget = new Budget({
      work: WORK + WORK_A_MESSAGE * messages.length + characters,
      characters: CHARACTERS + 10 * characters,
    });
    const given = Object.entries(variables).map(([name, value]): [string, Value] => [name, templateValue(value)]);
    const values = { ...globals(budget, now), ...Object.fromEntries(given), ...conversation };
    return readable(() => new Interpreter(budget, values).run(parsed));
  };
}

/** JavaScript's own complaint about brackets in brackets says nothing of the template. */
function readable<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof RangeError) throw new Error('it has too many brackets, lists or blocks in each other');
    throw error;
  }
}
