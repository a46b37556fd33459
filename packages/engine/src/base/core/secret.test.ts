import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from './secret.js';

const key = 'sk-"very/se.cret\\+';
const secret = new Secret(key);

describe('a secret', () => {
  it('is given away by nothing that writes values', () => {
    expect(`${secret}`).toBe('[secret]');
    expect(JSON.stringify({ key: secret })).toBe('{}');
    expect(JSON.stringify(structuredClone({ ...secret }))).toBe('{}');
  });

  it('is masked in a text, and in JSON however that spells it', () => {
    const byNumber = [...key].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0').toUpperCase()}`);
    expect(secret.mask(`a ${key} b ${key}`)).toBe('a [secret] b [secret]');
    for (const spelt of [JSON.stringify(key), `"${byNumber.join('')}"`, JSON.stringify(key).replaceAll('/', '\\/')]) {
      expect(JSON.parse(spelt)).toBe(key);
      expect(secret.mask(`{"detail": ${spelt}}`)).toBe('{"detail": "[secret]"}');
    }
  });

  it('is masked without the scheme of a header', () => {
    for (const scheme of ['Bearer', 'basic'])
      expect(new Secret(`${scheme} abc-12345`).mask(`no ${scheme} abc-12345, abc-12345`)).toBe(
        `no ${scheme} [secret], [secret]`,
      );
  });

  it('is masked without the newline of the file that it came from', () => {
    for (const text of ['abc-12345\n', ' abc-12345', 'Bearer abc-12345\r\n']) {
      const read = new Secret(text);
      expect(read.reveal()).toBe(text.trim());
      expect(read.mask('no abc-12345')).toBe('no [secret]');
    }
  });

  it('that is short stays in texts, where it may stand by chance', () => {
    expect(new Secret('data').mask('{"data": 1}')).toBe('{"data": 1}');
  });

  it('leaves every other text as it is', () => {
    fc.assert(fc.property(fc.string(), (text) => secret.mask(text) === text));
  });
});
