/** The normalizers of a tokenizer.json, which change a text before it is cut. */
import { space } from '../pattern/character-set.js';
import type { Work } from '../work.js';
import { PrecompiledNormalizer } from './library.js';
import { bytesAsText, finderOf, flagOf, type Part, partsOf, replaced, textOf, unknownPart } from './part.js';

export interface Normalizer {
  change(text: string, work: Work): string;
  /** Whether the changed text begins with another character of the text than its first. */
  dropsStart(text: string, work: Work): boolean;
}

/** @throws Error naming what cannot be used */
export function normalizerOf(part: Part): Normalizer {
  const plain = plainNormalizer(part);
  if (plain !== undefined)
    return {
      change(text, work) {
        work.spend(text.length + 1);
        const changed = plain(text);
        work.text(changed.length);
        return changed;
      },
      dropsStart([first = '']) {
        return first !== '' && plain(`${first}x`) === 'x';
      },
    };
  switch (part.type) {
    case 'Sequence': {
      const all = partsOf(part, 'normalizers').map(normalizerOf);
      return {
        change: (text, work) => all.reduce((changed, each) => each.change(changed, work), text),
        dropsStart(text, work) {
          let changed = text;
          return all.some((each) => {
            const drops = each.dropsStart(changed, work);
            changed = each.change(changed, work);
            return drops;
          });
        },
      };
    }
    case 'Replace': {
      const find = finderOf(part);
      const content = textOf(part, 'content');
      return {
        change: (text, work) => replaced(text, find, content, work),
        dropsStart(text, work) {
          const [[start, end] = [0, 0]] = find(text, work);
          return (
            start === 0 && end > 0 && (content === '' || end > String.fromCodePoint(text.codePointAt(0) ?? 0).length)
          );
        },
      };
    }
    case 'ByteLevel':
      return { change: bytesAsText, dropsStart: () => false };
    default:
      throw unknownPart('normalizer', part);
  }
}

function plainNormalizer(part: Part): ((text: string) => string) | undefined {
  const { type } = part;
  switch (type) {
    case 'NFC':
    case 'NFD':
    case 'NFKC':
    case 'NFKD':
      return (text) => text.normalize(type);
    case 'Lowercase':
      return lowered;
    case 'StripAccents':
      return (text) => text.replace(/\p{M}/gu, '');
    case 'Prepend': {
      const prefix = textOf(part, 'prepend');
      if (prefix === '') throw new Error('Prepend.prepend must not be empty');
      return (text) => (text === '' ? '' : prefix + text);
    }
    case 'Strip': {
      const left = flagOf(part, 'strip_left', false);
      const right = flagOf(part, 'strip_right', false);
      return (text) => stripped(text, left, right);
    }
    case 'BertNormalizer':
      return bertNormalizer(part);
    case 'Precompiled': {
      const normalizer = new PrecompiledNormalizer(part);
      return (text) => normalizer.normalize(text);
    }
    default:
      return undefined;
  }
}

/** One by one: at the end of a word the method of JavaScript gives another small sigma. */
const lowered = (text: string) => Array.from(text, (character) => character.toLowerCase()).join('');

/** The Chinese characters of BERT, some blocks of Unicode. */
const CHINESE =
  /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu;

function bertNormalizer(part: Part): (text: string) => string {
  const lowers = flagOf(part, 'lowercase', true);
  const steps: readonly (readonly [isOn: boolean, change: (text: string) => string])[] = [
    [
      flagOf(part, 'clean_text', true),
      (text) => text.replace(/(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\ufffd]/gu, '').replace(/\p{White_Space}/gu, ' '),
    ],
    [flagOf(part, 'handle_chinese_chars', true), (text) => text.replace(CHINESE, ' $& ')],
    [flagOf(part, 'strip_accents', lowers), (text) => text.normalize('NFD').replace(/\p{Mn}/gu, '')],
    [lowers, lowered],
  ];
  return (text) => steps.reduce((changed, [isOn, change]) => (isOn ? change(changed) : changed), text);
}

/** The text without white space at its ends. JavaScript's `trim` takes other characters. */
function stripped(text: string, left: boolean, right: boolean): string {
  let start = 0;
  let end = text.length;
  if (left) while (start < end && space(text.charCodeAt(start))) start++;
  if (right) while (end > start && space(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}
