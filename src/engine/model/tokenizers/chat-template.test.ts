import { describe, expect, it } from 'vitest';
import { user } from '../../../base/core/message.js';
import { chatTemplate } from './chat-template.js';

const render = (source: string, messages = [user('hi')]) =>
  chatTemplate(source)(
    {},
    messages.map((message) => ({ ...message })),
  );
/** A text that doubles `times` times. */
const doubled = (times: number, first = 'a') => `{% set x = '${first}' %}${'{% set x = x ~ x %}'.repeat(times)}`;
const loop = (range: string, body: string) => `{% for i in range(${range}) %}${body}{% endfor %}`;

describe('a chat template', () => {
  it('has the functions and constants of the library', () => {
    expect(render(loop('3', '{{ i }}') + loop('1, 3', '{{ i }}') + loop('5, 0, -2', '{{ i }}'))).toBe('01212531');
    expect(render('{{ true }}{{ False }}{{ none is none }}')).toBe('truefalsetrue');
    expect(render("{{ strftime_now('%Y') }}")).toMatch(/^\d{4}$/);
    expect(() => render("{{ raise_exception('no system') }}")).toThrow('no system');
  });

  it('may work as much as a long conversation takes', () => {
    const messages = Array.from({ length: 2000 }, (_, i) => user(`question ${i}`));
    const source = '{% for m in messages %}{% if loop.first %}<s>{% endif %}{{ m.content | trim }}\n{% endfor %}';
    expect(render(source, messages).split('\n')).toHaveLength(2001);
  });
});

describe('a hostile chat template ends by name', () => {
  it.each([
    ['loops 1e9 times', loop('1000000000', ''), 'range'],
    ['counts by 0', loop('0, 1, 0', ''), 'range'],
    ['loops over nothing in loops', loop('5000', loop('5000', '')), 'more than any conversation takes'],
    ['writes in loops in loops', loop('1000', loop('1000', loop('1000', 'x'))), 'more than any conversation takes'],
    ['doubles a text 27 times', `${doubled(27)}{{ x }}`, 'a text of more than'],
    ['doubles a list 27 times', doubled(27).replaceAll("'a'", '[1]').replaceAll('~', '+'), 'more than 100000 entries'],
    ['quotes quotes', `{% set x = '"' %}${'{% set x = x | tojson %}'.repeat(27)}{{ x }}`, 'a text of more than'],
    ['replaces each letter by a megabyte', `${doubled(18)}{{ x | replace('a', x) }}`, /./],
    ['changes a long text again and again', doubled(18) + '{%set y=x|upper%}'.repeat(9000), 'more than any'],
    ['calls itself', '{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}', /./],
    ['has brackets in brackets', `{{ ${'('.repeat(9e4)}1${')'.repeat(9e4)} }}`, 'call stack'],
    ['is long', ' '.repeat(2e6), 'more than 200000 characters'],
    ['has much white space', `{% macro${' '.repeat(48_000)}f() %}{% endmacro %}`, '48000 characters of white space'],
  ])('that %s', (_, source, message) => {
    expect(() => render(source)).toThrow(message);
  });
});
