import { describe, expect, it } from 'vitest';
import { Work } from '../work.js';
import { Pattern } from './pattern.js';

/** The text with each match between bars. */
function marked(source: string, text: string): string {
  let written = '';
  let from = 0;
  for (const [start, end] of new Pattern(source).matches(text, new Work(text.length))) {
    written += `${text.slice(from, start)}|${text.slice(start, end)}|`;
    from = end;
  }
  return written + text.slice(from);
}

describe('a pattern', () => {
  // As PyPI's tokenizers 0.23.3 finds them.
  it.each([
    ['(?i:é)', 'aÉb', 'a|É|b'],
    ["(?i:'s)", "it'ſ 'S", "it|'ſ| |'S|"],
    ['(?i)[σ]|ა', 'Σς აᲐ', '|Σ||ς| |ა||Ა|'],
    ['(?i:ı|å)', 'Iiı Å', 'Ii|ı| |Å|'],
    ['(?i:\\p{Lu})', 'aB', 'a|B|'],
    ['(?i:[^a-y&&[^k]]+)', 'abKkZ', 'ab|KkZ|'],
    ['(?i:[[^a]b]+)', 'aAb', '|aAb|'],
    ['(?i)AB', 'xabx', 'x|ab|x'],
    ['x(?i)AB', 'xabx', '|xab|x'],
    ['(?i:[^k])', 'KLk', 'K|L|k'],
    ['\\w+', 'a²b³¹¼٣_é\u0301-\u200d', '|a²b³¹¼٣_é\u0301|-\u200d'],
    ['[\\w]+', 'a²b³¹¼٣_', '|a|²|b|³¹¼|٣_|'],
    ['[^\\w]+', 'a²b-', 'a|²|b|-|'],
    ['a{2}+', 'aaaaa', '|aaaa|a'],
    ['a{,2}', 'aab', '|aa|b||'],
    ['a{1,3}?', 'aaa', '|a||a||a|'],
    ['a?+a', 'aa a', '|aa| a'],
    ['(?:a*)*b', 'aab c', '|aab| c'],
    ['(?:a|ab)(?:c|bcd)', 'abcd', '|abcd|'],
    ['(?>a|ab)c', 'abc', 'abc'],
    ['^', 'ab\ncd', '||ab\n||cd'],
    ['$', 'ab\ncd', 'ab||\ncd||'],
    ['\\bcd\\b', 'cd cde', '|cd| cde'],
    ['\\Aab', 'abab', '|ab|ab'],
    ['b\\Z', 'b ab\n', 'b a|b|\n'],
    ['\\h+', 'x12Fg', 'x|12F|g'],
    ['[[:alpha:]]+|[[:^alpha:]]', 'ab1', '|ab||1|'],
    ['\\p{Han}+', 'a中b', 'a|中|b'],
    ['\\p{^L}+', 'a1b', 'a|1|b'],
    ['\\p{white space}+|\\p{lu}', 'a Bc', 'a| ||B|c'],
    ['(?<=ab|c)d', 'abd cd d', 'ab|d| c|d| d'],
    ['(?<!a)b', 'ab b', 'ab |b|'],
    ['[a-z&&[^b]]+', 'abc', '|a|b|c|'],
    ['[^(\\s|[.,])]+', 'a.b,(c| d', '|a|.|b|,(|c|| |d|'],
    ['[]a-]+', 'a]b-', '|a]|b|-|'],
    ['\\x{1F600}\\u0041\\x42', '😀AB', '|😀AB|'],
    ['.', '\n😀', '\n|😀|'],
    ['\\s+(?!\\S)|\\s+', 'a   b \u0085 ', 'a|  || |b| \u0085 |'],
    ['\\s', '\ufeff\u0085', '\ufeff|\u0085|'],
    ['{|a{x}|]', 'a{x}{]', '|a{x}||{||]|'],
  ])('%s in %j', (source, text, expected) => {
    expect(marked(source, text)).toBe(expected);
  });

  it.each([
    ['(a', 'a bracket that is not closed'],
    ['a)', 'an unexpected )'],
    ['[a', 'an unexpected end'],
    ['[b-a]', 'a range that cannot be read'],
    ['[a-\\d]', 'a range that cannot be read'],
    ['a{2,1}', 'a range of repetitions that is empty'],
    ['*a', '* with nothing to repeat'],
    ['(a)\\1', '\\1, which is not supported'],
    ['(?i:ss)', "'ss' without regard to case, which is not supported"],
    ['(?i)Maß', "'ß' without regard to case, which is not supported"],
    ['(?x:a)', 'a group that is not supported'],
    ['\\p{Nonsense}', '\\p{Nonsense}, which is not supported'],
    ['[[:nonsense:]]', '[:nonsense:], which is not supported'],
    ['(?<=a+)b', 'looks behind for a text without a greatest length'],
    ['(?<=a?+)b', 'looks behind for a part that gives nothing back'],
    ['(?:(?:ab){1000}){1000}', 'too long with its repetitions written out'],
  ])('%s is refused', (source, message) => {
    expect(() => new Pattern(source)).toThrow(message);
  });
});
