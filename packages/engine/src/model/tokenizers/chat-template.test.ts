import { describe, expect, it } from 'vitest';
import { processorSeconds } from '../../../../../test/support/time-and-chance.js';
import { user } from '../../base/core/message.js';
import { chatTemplate } from './chat-template.js';

const render = (source: string, messages = [user('hi')]) =>
  chatTemplate(source)(
    {},
    messages.map((message) => ({ ...message })),
  );
/** A text that doubles `times` times. */
const doubled = (times: number, first = 'a') => `{% set x = '${first}' %}${'{% set x = x ~ x %}'.repeat(times)}`;
/** A list of two lists of two lists ..., 40 deep, of 41 lists in all. */
const shared = (name: string) => `{% set ${name} = [1] %}${`{% set ${name} = [${name}, ${name}] %}`.repeat(40)}`;
const loop = (range: string, body: string) => `{% for i in range(${range}) %}${body}{% endfor %}`;

describe('a chat template', () => {
  it('has the functions and constants of the library', () => {
    expect(render(loop('3', '{{ i }}') + loop('1, 3', '{{ i }}') + loop('5, 0, -2', '{{ i }}'))).toBe('01212531');
    expect(render('{{ true }}{{ False }}{{ none is none }}')).toBe('TrueFalseTrue');
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
    ['doubles a list 27 times', doubled(27).replaceAll("'a'", '[1]').replaceAll('~', '+'), 'more than any'],
    ['quotes quotes', `{% set x = '"' %}${'{% set x = x | tojson %}'.repeat(27)}{{ x }}`, 'a text of more than'],
    ['replaces each letter by a megabyte', `${doubled(18)}{{ x | replace('a', x) }}`, /./],
    ['changes a long text again and again', doubled(18) + '{%set y=x|upper%}'.repeat(9000), 'more than any'],
    ['calls itself', '{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}', /./],
    ['has brackets in brackets', `{{ ${'('.repeat(9e4)}1${')'.repeat(9e4)} }}`, 'too many brackets'],
    ['is long', ' '.repeat(2e6), 'more than 200000 characters'],
    ...[
      ['prints', '{{ x }}'],
      ['writes as a text', '{% set y = x|string %}'],
      ['writes as JSON', '{% set y = x|tojson %}'],
      ['writes as indented JSON', '{% set y = x|tojson(indent=2) %}'],
      ['compares', '{% set y = x == copy %}'],
      ['orders', '{% set y = [x, copy]|sort %}'],
      ['takes the largest of', '{% set y = [x, copy]|max %}'],
      ['searches', '{% set y = copy in [x] %}'],
      ['counts', '{% set y = [x].count(copy) %}'],
      ['makes unique', '{% set y = [x, copy]|unique|list %}'],
      ['groups', "{% set y = [{'a': x}, {'a': copy}]|groupby('a') %}"],
      ['joins', "{{ [x]|join('') }}"],
      ['formats', "{{ '%s' % x }}"],
      ['formats by name', "{{ '{}'.format(x) }}"],
      ['concatenates', "{{ '' ~ x }}"],
      ['capitalises', '{{ x|upper }}'],
      ['prints a dictionary of', "{{ {'a': x} }}"],
      ['prints pairs of', "{{ {'a': x}.items() }}"],
      ['watches for changes of', '{% for i in [x, copy] %}{{ loop.changed(i) }}{% endfor %}'],
      ['sees as a test', '{% set y = [x]|select("eq", copy)|list %}'],
    ].map(([does, use]): [string, string, RegExp] => [
      `${does} a list that shares its parts 40 times`,
      `${shared('x')}${shared('copy')}${use}`,
      /more than any conversation takes|a text of more than/,
    ]),
    ['repeats a text', "{{ 'a' * 1000000000 }}", 'a text of more than'],
    ['repeats a list', '{% set x = [1] * 1000000000 %}', 'more than any'],
    ['multiplies numbers', `{% set x = 9 %}${'{% set x = x * x %}'.repeat(60)}`, 'number of more than'],
    ['raises to a power', '{{ 9 ** 9 ** 9 ** 9 ** 9 }}', 'number of more than'],
    ['indents by a gigabyte', "{{ 'a\nb'|indent(1000000000) }}", 'a text of more than'],
    ['writes JSON with a gigabyte of indent', '{{ [1]|tojson(indent=1000000000) }}', 'a text of more than'],
    [
      'puts separators of a megabyte between',
      `${doubled(18)}{{ range(900)|list|tojson(separators=(x, x)) }}`,
      /more than/,
    ],
    ['pads a format', "{{ '%1000000000d' % 1 }}", 'a text of more than'],
    ['pads a field', "{{ '{:1000000000}'.format(1) }}", 'a text of more than'],
    ['centres in a gigabyte', "{{ 'a'.center(1000000000) }}{{ 'a'|center(1000000000) }}", 'a text of more than'],
    ['fills with zeros', "{{ 'a'.zfill(1000000000) }}", 'a text of more than'],
    ['fills a batch', "{{ [1]|batch(1000000000, 'x')|list }}", 'more than any'],
    ['slices into a billion', '{{ [1]|slice(1000000000)|list }}', 'more than any'],
    [
      'searches a long text again and again',
      `${doubled(18)}{% for i in range(9999) %}{{ 'b' in x }}{% endfor %}`,
      'more than',
    ],
    [
      'splits a long text again and again',
      `${doubled(18)}{% for i in range(9999) %}{{ x.split('a')|length }}{% endfor %}`,
      'more than',
    ],
    [
      'takes letters of a long text',
      `${doubled(18, '😀')}{% for i in range(9999) %}{{ x[i] }}{% endfor %}`,
      'more than',
    ],
    // Whether the work or the stack ends first depends on how much of the renderer is compiled by then.
    ['nests lists', `{% set x = [] %}${'{% set x = [x] %}'.repeat(9000)}{{ x }}`, /more than any|in each other/],
    ['calls loops again', '{% for i in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}', 'in each other'],
    [
      'writes the same block again',
      `${'{% filter upper %}'.repeat(150)}${'x'.repeat(1e5)}${'{% endfilter %}'.repeat(150)}`,
      /more than|has/,
    ],
  ])('that %s', async (_, source, message) => {
    const seconds = await processorSeconds(() => expect(() => render(source)).toThrow(message));
    expect(seconds).toBeLessThan(5);
  });
});
