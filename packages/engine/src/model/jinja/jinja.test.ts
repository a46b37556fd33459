/** Small templates: the outputs of jinja2 as `test/goldens/chat_templates.py` wrote them. */
import { describe, expect, it } from 'vitest';
import goldens from '../../../../../test/goldens/chat-templates.json' with { type: 'json' };
import { chatTemplate } from '../tokenizers/chat-template.js';
import { Budget } from './budget.js';
import { jsonStyle, readJson, writeJson } from './json.js';

const now = () => new Date(2026, 10, 27, 0, 34, 37);
/** The output, or null if the template is refused. A fault of the interpreter itself is no refusal. */
function rendered(source: string): string | null {
  try {
    return chatTemplate(source)({}, [], undefined, now);
  } catch (error) {
    if (error instanceof Error && error.constructor === Error) return null;
    throw error;
  }
}

describe('a template has the output of jinja2', () => {
  it.each(goldens as [string, string | null][])('%s', (source, right) => {
    expect(rendered(source)).toBe(right);
  });
});

describe('what jinja2 plays and drmas does not is refused by its name', () => {
  it.each([
    ['{% block a %}x{% endblock %}{{ self.a() }}', "drmas does not play 'self'"],
    ['{{ self is defined }}', "drmas does not play 'self'"],
    ['{{ lipsum() }}', 'drmas does not play lipsum'],
    ['{{ 10.bit_length() }}', "drmas does not play 'bit_length' of a value of type int"],
    ['{{ 5.5.hex is defined }}', "drmas does not play 'hex' of a value of type float"],
    ["{{ 'a'['encode'] is defined }}", "drmas does not play 'encode' of a value of type str"],
    ["{{ {}.fromkeys(['a']) }}", "drmas does not play 'fromkeys' of a value of type dict"],
    ['{{ range(3).start }}', "drmas does not play 'start' of a value of type range"],
    ['{{ {}.keys() == {}.keys() }}', 'drmas does not compare dict_keys'],
    ["{{ ['<' | e] }}", "what 'safe' or 'escape' returns in a list or dict"],
    ["{{ ('<' | safe).split('<') }}", "drmas does not play 'split' of what 'safe' or 'escape' returns"],
    ["{{ ('%s' | safe) % '<' }}", "drmas does not play % of what 'safe' returns"],
    ['{% for x in [1] %}{% set y %}{% break %}{% endset %}{% endfor %}', "'break' stands in no loop, or in a block"],
    ['{{ [1] | random }}', "drmas does not play the filter 'random'"],
  ])('%s', (source, message) => {
    expect(() => chatTemplate(source)({}, [], undefined, now)).toThrow(message);
  });
});

describe('JSON of a tool call', () => {
  const again = (text: string) =>
    writeJson(
      readJson(text),
      jsonStyle(() => undefined),
      new Budget({ work: 1e4, characters: 1e4 }),
    );

  it.each([
    '{"id": 2512292042121000001, "price": 5.0, "10": 1, "2": 2}',
    '[-0, -0.0, 1.5, 1e-07, 1e+16, 123456789012345678901234567890]',
    '{"": [], "a": {}, "__proto__": [null, true, false, "\\"\\\\\\n\\u0001"]}',
    '"text"',
  ])('%s keeps its numbers and the order of its keys', (text) => {
    expect(again(text)).toBe(text.replace('[-0,', '[0,'));
  });

  it('is refused if JSON.parse refuses it', () => {
    for (const text of ['', '{', '[1,]', '{"a" 1}', '01', 'NaN', '{"a": 1} x']) expect(() => readJson(text)).toThrow();
  });
});
