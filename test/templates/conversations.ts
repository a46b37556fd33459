/** Random conversations as JSON, with numbers that JSON.parse would change. */
import fc from 'fast-check';

export interface Conversation {
  /** JSON of lists as chat templates read them. */
  readonly messages: string;
  readonly tools: string;
  readonly isThinking: boolean;
}

/** A text of JSON. */
type Json = string;

const object = (entries: Readonly<Record<string, Json | undefined>>): Json =>
  `{${Object.entries(entries)
    .flatMap(([key, value]) => (value === undefined ? [] : `${JSON.stringify(key)}: ${value}`))
    .join(', ')}}`;
const list = (items: readonly Json[]): Json => `[${items.join(', ')}]`;

const texts = fc.constantFrom(
  ...[
    'What is 12 + 7?',
    '  two  spaces\n',
    'Grüße 😀 "quoted"',
    '<tool_call>',
    '{{ not a variable }}',
    '',
    'line\n\n    code()',
  ],
);
const thoughts = fc.constantFrom(
  '<think>\nsum them\n</think>\n\n19',
  '<think>\n\n</think>\n\n    indented',
  'no thinking',
);
const values = fc.constantFrom<Json>(
  ...['"fig"', '2512292042121000001', '5.0', '1e-7', '-0.5', '1e16', 'true', 'false', 'null', '[1, "a", null]'],
  ...['{"2": 2, "1": {"b": [true]}}', '"a\\nb <&> \'q\'"', '[]', '{}', '"ü"'],
);
const names = fc.constantFrom('price', 'look_up', 'f');
const argumentsOf = fc.dictionary(fc.constantFrom('of', 'id', '10', 'größe'), values, { maxKeys: 3 }).map(object);
const call = fc.record({ name: names, arguments: argumentsOf });

const schema = fc.constantFrom<Json>(
  '{"type": "object", "properties": {"of": {"type": "string", "description": "a fruit"}}, "required": ["of"]}',
  '{"type": "object", "properties": {"id": {"type": "integer", "maximum": 9007199254740993}, "of": {"type": ["string", "null"]}}}',
  '{"type": "object", "properties": {"x": {"type": "array", "items": {"type": "string"}}, "y": {"enum": ["a", 1, 2.0]}}}',
  '{"type": "object", "properties": {"any": {}}}',
  '{"type": "object", "properties": {}}',
);
const tools = fc
  .uniqueArray(fc.record({ name: names, description: texts, parameters: schema }), {
    selector: ({ name }) => name,
    maxLength: 3,
  })
  .map((some) =>
    some.map(({ name, description, parameters }) => {
      const named = { name: JSON.stringify(name), description: JSON.stringify(description), parameters };
      return object({ type: '"function"', function: object(named) });
    }),
  );

const message = (role: string, content: string, more: Readonly<Record<string, Json>> = {}) =>
  object({ role: JSON.stringify(role), content: JSON.stringify(content), ...more });

/** An assistant's turn: an answer, or calls with their results and an answer. */
const turn = fc.oneof(
  fc
    .record({ question: texts, answer: fc.oneof(texts, thoughts) })
    .map(({ question, answer }) => [message('user', question), message('assistant', answer)]),
  fc
    .record({
      question: texts,
      before: fc.oneof(fc.constant(''), thoughts),
      calls: fc.array(call, { minLength: 1, maxLength: 2 }),
      result: values,
      answer: texts,
    })
    .map(({ question, before, calls, result, answer }) => {
      const written = calls.map(({ name, arguments: given }, i) =>
        object({
          id: `"call0000${i}"`,
          type: '"function"',
          function: object({ name: JSON.stringify(name), arguments: given }),
        }),
      );
      const results = calls.map(({ name }, i) =>
        message('tool', result, { tool_call_id: `"call0000${i}"`, name: JSON.stringify(name) }),
      );
      return [
        message('user', question),
        message('assistant', before, { tool_calls: list(written) }),
        ...results,
        message('assistant', answer),
      ];
    }),
);

const conversations = fc
  .record({
    system: fc.option(texts),
    turns: fc.array(turn, { maxLength: 3 }),
    last: fc.option(texts, { freq: 4 }),
    tools: fc.option(tools),
    isThinking: fc.boolean(),
  })
  .map(({ system, turns, last, tools, isThinking }): Conversation => {
    const begin = system === null ? [] : [message('system', system)];
    const end = last === null ? [] : [message('user', last)];
    const messages = list([...begin, ...turns.flat(), ...end]);
    return { messages, tools: tools === null ? 'null' : list(tools), isThinking };
  });

/** The same conversations for the same seed. */
export const randomConversations = (count: number, seed: number): Conversation[] =>
  fc.sample(conversations, { numRuns: count, seed });
