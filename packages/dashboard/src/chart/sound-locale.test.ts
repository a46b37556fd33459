import { describe, expect, it } from 'vitest';
import { useSoundLocale } from './sound-locale.js';

describe('the language of the browser', () => {
  it.each([
    ['en-US@posix', 'en'],
    ['', 'en'],
    ['C', 'en'],
    ['de-CH', 'de-CH'],
    ['pt-BR-u-nu-latn', 'pt-BR-u-nu-latn'],
  ])('%j is %j for the charts', (language, expected) => {
    const navigator = { language };
    useSoundLocale(navigator);
    expect(navigator.language).toBe(expected);
    expect(() => new Intl.NumberFormat(navigator.language)).not.toThrow();
  });
});
